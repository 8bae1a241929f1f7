import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';

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

/** Starts a program; `folder` is its own, removed with it if this process dies first. */
export function startProcess(program: string, args: readonly string[], folder: string): Process {
  const child = spawn(program, args, { stdio: 'ignore', cwd: folder });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} could not be started.`);
  child.unref();
  let running = true;
  const ended = once(child, 'exit').then(() => {
    running = false;
    tellKeeper('-', pid, folder);
  });
  tellKeeper('+', pid, folder);
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

export function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 3 });
}

// Jest hides the events of the real process from tests, and no handler runs after a SIGKILL. So a shell of our own holds the
// other end of a pipe: when this process is gone, however that came, the pipe closes and the shell ends what is left.
const KEEPER = `
trap '' INT TERM HUP
list=
while read -r sign pid folder; do
  if [ "$sign" = + ]; then
    list="$list $pid:$folder"
  else
    rest=
    for entry in $list; do [ "\${entry%%:*}" = "$pid" ] || rest="$rest $entry"; done
    list=$rest
  fi
done
for entry in $list; do
  kill -CONT "\${entry%%:*}"
  kill -KILL "\${entry%%:*}"
  rm -rf "\${entry#*:}"
done`;

let keeper: ChildProcess | undefined;

function tellKeeper(sign: '+' | '-', pid: number, folder: string): void {
  if (keeper === undefined) {
    keeper = spawn('sh', ['-c', KEEPER], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    keeper.unref();
    // A pipe is a socket, which keeps a process alive unless told not to.
    (keeper.stdin as unknown as { unref(): void }).unref();
  }
  keeper.stdin?.write(`${sign} ${String(pid)} ${folder}\n`);
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
