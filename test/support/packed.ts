// The package as it is published: built, packed, and asked from programs of their own.
import { execFile } from 'node:child_process';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

export const run = promisify(execFile);
export const root = path.resolve(__dirname, '../..');

export const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => path.relative(folder, path.join(entry.parentPath, entry.name)));

const newest = (target: string): number =>
  statSync(target).isDirectory()
    ? Math.max(0, ...readdirSync(target).map(name => newest(path.join(target, name))))
    : statSync(target).mtimeMs;

function isBuilt(): boolean {
  try {
    const built = statSync(path.join(root, 'dist/index.d.cts')).mtimeMs;
    const sources = [
      'src',
      'scripts',
      'package.json',
      'rollup.config.js',
      'tsconfig.json',
      'tsconfig.build.json',
    ];
    return sources.every(name => newest(path.join(root, name)) <= built);
  } catch {
    return false;
  }
}

export async function node(folder: string, ...args: string[]): Promise<string> {
  // Without the flags of the test runner, and no longer than a program that forgets to end.
  const env = { ...process.env, NODE_OPTIONS: '' };
  const { stdout } = await run(process.execPath, args, { cwd: folder, env, timeout: 60_000 });
  return stdout;
}

export const nodeJson = async (folder: string, ...args: string[]): Promise<unknown> =>
  JSON.parse(await node(folder, ...args));

export async function typeCheck(folder: string, files: string[], compilerOptions: object): Promise<string> {
  const config = path.join(folder, 'tsconfig.json');
  writeFileSync(
    config,
    JSON.stringify({
      compilerOptions: {
        strict: true,
        target: 'es2022',
        lib: ['es2023'],
        types: ['node'],
        ...compilerOptions,
      },
      files,
    }),
  );
  try {
    return await node(folder, path.join(root, 'node_modules/typescript/bin/tsc'), '-p', config);
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

/** Packs what is here, built anew where it has changed. Answers the path of the tarball. */
export async function pack(folder: string): Promise<string> {
  const how = isBuilt() ? ['--ignore-scripts'] : [];
  await run('npm', ['pack', ...how, '--pack-destination', folder], { cwd: root });
  const tarball = readdirSync(folder).find(name => name.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm pack left no tarball');
  return path.join(folder, tarball);
}
