import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** Forgets which warnings were given in this process, as a fresh process would. */
export function forgetWarnings(): void {
  const shared = globalThis as Record<symbol, Set<string> | undefined>;
  shared[Symbol.for('limitkeeper.warnings.v1')]?.clear();
}

/** Collects the codes that are emitted from now on, in place of printing them. */
export function watchWarnings(): string[] {
  const codes: string[] = [];
  jest.spyOn(process, 'emitWarning').mockImplementation(((_text: string, options: { code: string }) => {
    codes.push(options.code);
  }) as never);
  return codes;
}

interface Run {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

/** Runs a TypeScript file of `test/fixtures` in a process of its own. */
export function runFixture(
  name: string,
  {
    args = [],
    env = {},
    nodeArgs = [],
  }: { args?: string[]; env?: NodeJS.ProcessEnv; nodeArgs?: string[] } = {},
): Promise<Run> {
  const root = join(__dirname, '../..');
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [...nodeArgs, '--import', 'tsx', join('test/fixtures', name), ...args],
      { cwd: root, env: { PATH: process.env['PATH'], ...env }, timeout: 60_000 },
    );
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', chunk => (stdout += String(chunk)));
    child.stderr.on('data', chunk => (stderr += String(chunk)));
    child.on('error', reject);
    child.on('close', code => resolve({ stdout, stderr, code }));
  });
}
