import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A process that we started and that never outlives the process that started it. */
export interface Process {
  readonly pid: number;
  readonly running: boolean;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Ends it, frozen or not, and waits until it has. */
  end(): Promise<void>;
}

/** Starts a program in a folder. */
export function startProcess(program: string, args: readonly string[], folder: string): Process {
  const child = spawn(program, args, { stdio: 'ignore', cwd: folder });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} could not be started.`);
  child.unref();
  let running = true;
  const ended = once(child, 'exit').then(() => {
    running = false;
    tellKeeper('ended', pid);
  });
  tellKeeper('started', pid);
  const signal = (name: NodeJS.Signals): void => {
    // Only while it runs: its number may belong to somebody else afterwards.
    if (running) child.kill(name);
  };
  return {
    pid,
    get running() {
      return running;
    },
    ended,
    signal,
    async end() {
      child.ref();
      signal('SIGCONT');
      signal('SIGKILL');
      await ended;
    },
  };
}

/** A temporary folder, which is removed at the latest when this process is gone. */
export async function makeFolder(prefix: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), prefix));
  tellKeeper('made', folder);
  return folder;
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  tellKeeper('removed', folder);
}

// Jest hides the events of the real process from tests, and no handler runs after a SIGKILL. So a shell of our own holds the
// other end of a pipe: when this process is gone, however that came, the pipe closes and the shell clears up what is left.
const KEEPER = `
trap '' INT TERM HUP
pids= folders=
without() { for item in $1; do [ "$item" = "$2" ] || printf '%s ' "$item"; done; }
while read -r event what; do
  case $event in
    started) pids="$pids $what" ;;
    ended) pids=$(without "$pids" "$what") ;;
    made) folders="$folders $what" ;;
    removed) folders=$(without "$folders" "$what") ;;
  esac
done
for pid in $pids; do kill -CONT "$pid"; kill -KILL "$pid"; done
for folder in $folders; do rm -rf "$folder"; done`;

let keeper: ChildProcess | undefined;

function tellKeeper(event: 'started' | 'ended' | 'made' | 'removed', what: number | string): void {
  if (keeper === undefined) {
    keeper = spawn('sh', ['-c', KEEPER], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    keeper.unref();
    // A pipe is a socket, which keeps a process alive unless told not to.
    (keeper.stdin as unknown as { unref(): void }).unref();
  }
  keeper.stdin?.write(`${event} ${String(what)}\n`);
}

// Below the range from which the system takes the ports of outgoing connections (32768 on): a server that restarts must find
// its port free again. A cluster node also needs its port + 10,000.
const FIRST = 11_000;
const LAST = 22_000;
const BUS = 10_000;

/** A port of 127.0.0.1 that nobody listens on, nor on the port 10,000 above it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if ((await isFree(port)) && (await isFree(port + BUS))) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  try {
    probe.listen(port, '127.0.0.1');
    await once(probe, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    if (probe.listening) {
      probe.close();
      await once(probe, 'close');
    }
  }
}
