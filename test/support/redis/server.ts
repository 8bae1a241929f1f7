import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { findRedisServer } from './binaries.js';
import { Connection, type Reply } from './connection.js';
import { freePort, makeFolder, type Process, removeFolder, startProcess } from './processes.js';

export interface RedisOptions {
  /** More arguments of redis-server, e.g. `['--maxmemory', '4mb']`. */
  readonly args?: readonly string[];
  /** Sets `requirepass`. */
  readonly password?: string;
  /** A port chosen earlier, e.g. of a server that comes later than its clients; default: a free one. */
  readonly port?: number;
}

/** A real redis-server on 127.0.0.1, with its own temporary folder and no persistence unless `args` ask for it. */
export interface RedisServer {
  readonly port: number;
  /** `redis://127.0.0.1:port`, with the password where there is one. */
  readonly url: string;
  /** Changes with a restart. */
  readonly pid: number;
  readonly running: boolean;
  /** One command on a connection of the tests' own; rejects with a ReplyError where the server does. */
  call(...args: readonly (string | number)[]): Promise<Reply>;
  /** A number out of `INFO`, e.g. `used_cpu_user`. */
  info(field: string): Promise<string>;
  /** SIGKILL, and waits until the process is gone. */
  kill(): Promise<void>;
  /** Starts it again, on the same port and in the same folder; ends it first if it runs. */
  restart(): Promise<void>;
  /** SIGSTOP: it keeps its connections and answers nothing. */
  freeze(): void;
  /** SIGCONT: it goes on with all that has reached it in the meantime. */
  thaw(): void;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/** Starts a server and waits until it answers. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const { args = [], password } = options;
  const program = await findRedisServer();
  const folder = await makeFolder('limitkeeper-redis-');
  const log = join(folder, 'log');
  let port = options.port ?? (await freePort());
  let control: Connection | undefined;

  const launch = async (): Promise<Process> => {
    const secret = password === undefined ? [] : ['--requirepass', password, '--masterauth', password];
    const process = startProcess(
      program,
      [
        ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--logfile', log],
        ...['--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0', ...secret, ...args],
      ],
      folder,
    );
    try {
      await answering(process, port, log);
    } catch (error) {
      await process.end();
      throw error;
    }
    return process;
  };

  const first = async (): Promise<Process> => {
    for (let tries = 1; ; tries++) {
      try {
        return await launch();
      } catch (error) {
        // Somebody else took the port between the look and the start.
        if (options.port !== undefined || tries === 5 || !String(error).includes('in use')) throw error;
        port = await freePort();
      }
    }
  };

  let process = await first().catch(async (error: unknown) => {
    await removeFolder(folder);
    throw error;
  });

  const call = async (...command: readonly (string | number)[]): Promise<Reply> => {
    if (control?.usable !== true) control = await Connection.open(port, password);
    return control.call(...command);
  };
  const end = async (): Promise<void> => {
    control?.close();
    await process.end();
  };

  return {
    get port() {
      return port;
    },
    get url() {
      return `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${String(port)}`;
    },
    get pid() {
      return process.pid;
    },
    get running() {
      return process.running;
    },
    call,
    async info(field) {
      const text = String(await call('INFO', 'everything'));
      const found = new RegExp(`^${field}:(.*)\r$`, 'm').exec(text)?.[1];
      if (found === undefined) throw new Error(`INFO has no field ${field}.`);
      return found;
    },
    kill: end,
    async restart() {
      await end();
      process = await launch();
    },
    freeze() {
      process.signal('SIGSTOP');
    },
    thaw() {
      process.signal('SIGCONT');
    },
    async stop() {
      await end();
      await removeFolder(folder);
    },
  };
}

/** Waits until the server speaks, be it only to ask for the password; throws with its log when it ends instead. */
async function answering(process: Process, port: number, log: string): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    if (!alive(process)) break;
    const connection = await Connection.open(port).catch(() => undefined);
    if (connection !== undefined) {
      const answer = await connection.call('PING').catch((error: unknown) => String(error));
      connection.close();
      if (answer === 'PONG' || String(answer).includes('NOAUTH')) {
        // A foreign server may listen there and answer in the place of ours, which then ends.
        await wait(20);
        if (alive(process)) return;
        break;
      }
    }
    await wait(20);
  }
  const tail = (await readFile(log, 'utf8').catch(() => '')).slice(-1_000);
  throw new Error(`redis-server on port ${String(port)} does not answer: ${tail}`);
}

function alive(process: Process): boolean {
  return process.running;
}

/** Polls until `condition` holds; throws after `timeoutMs` with what was waited for. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 20_000,
): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`Waited ${String(timeoutMs)} ms in vain until ${what}.`);
    await wait(20);
  }
}
