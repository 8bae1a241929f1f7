import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '../..');

/** The command of a script in package.json, as npm would run it. */
function commandOf(script: string): string[] {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const [program, ...args] = manifest.scripts[script]!.split(' ');
  if (program !== 'tsx') throw new Error(`script ${script} is not run by tsx but by ${String(program)}`);
  // Not through npm and a shell: signals must reach the program.
  return [join(root, 'node_modules/tsx/dist/cli.mjs'), ...args];
}

export interface Program {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Resolves when its output holds the text; rejects when it ends without. */
  says(text: string | RegExp): Promise<RegExpMatchArray>;
  /** Resolves with its exit code, `null` when a signal ended it. */
  readonly ended: Promise<number | null>;
}

const running = new Set<ChildProcess>();

/** Runs a script of package.json in a process of its own. */
export function runScript(script: string, env: NodeJS.ProcessEnv = {}): Program {
  const child = spawn(process.execPath, commandOf(script), {
    cwd: root,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let stdout = '';
  let stderr = '';
  const listeners = new Set<() => void>();
  child.stdout.on('data', chunk => {
    stdout += String(chunk);
    for (const listener of listeners) listener();
  });
  child.stderr.on('data', chunk => (stderr += String(chunk)));
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', code => {
      running.delete(child);
      resolve(code);
    });
  });
  return {
    child,
    ended,
    stdout: () => stdout,
    stderr: () => stderr,
    says: text =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = stdout.match(text);
          if (found === null) return;
          listeners.delete(look);
          resolve(found);
        };
        listeners.add(look);
        look();
        void ended.then(code => {
          reject(new Error(`ended (${String(code)}) without saying ${String(text)}: ${stdout}${stderr}`));
        });
      }),
  };
}

/** For `afterAll`: no test that fails leaves a program behind. */
export async function endPrograms(): Promise<void> {
  await Promise.all(
    [...running].map(
      child =>
        new Promise(resolve => {
          child.on('close', resolve);
          child.kill('SIGKILL');
        }),
    ),
  );
}
