// Tests the package as users get it: packed, installed from the tarball into an empty project, imported both ways.
import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

jest.setTimeout(300_000);

interface Manifest {
  exports: Record<string, unknown>;
  dependencies?: Record<string, string>;
}

const run = promisify(execFile);
const root = path.resolve(__dirname, '../..');
const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as Manifest;

/** 'limitkeeper', 'limitkeeper/presets', … */
const specifiers = Object.keys(manifest.exports)
  .filter(subpath => subpath !== './package.json')
  .map(subpath => `limitkeeper${subpath.slice(1)}`);

/** The entries that load packages of their own; all others load node: modules only. */
const WITH_PACKAGES = ['limitkeeper/admin', 'limitkeeper/service', 'limitkeeper/config'];

const EXPRESS_VERSIONS = [
  { version: 5, runtime: 'express', types: '@types/express' },
  { version: 4, runtime: 'express4', types: '@types/express4' },
] as const;

let sandbox: string;
const project = (version: number): string => path.join(sandbox, `express${String(version)}`);

const filesBelow = (folder: string): string[] =>
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
    const sources = ['src', 'package.json', 'tsup.config.ts', 'tsconfig.json', 'tsconfig.build.json'];
    return sources.every(name => newest(path.join(root, name)) <= built);
  } catch {
    return false;
  }
}

async function node(folder: string, ...args: string[]): Promise<string> {
  // Without the flags of the test runner, and no longer than a program that forgets to end.
  const env = { ...process.env, NODE_OPTIONS: '' };
  const { stdout } = await run(process.execPath, args, { cwd: folder, env, timeout: 60_000 });
  return stdout;
}

const nodeJson = async (folder: string, ...args: string[]): Promise<unknown> =>
  JSON.parse(await node(folder, ...args));

async function typeCheck(folder: string, files: string[], compilerOptions: object): Promise<string> {
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

beforeAll(async () => {
  if (!isBuilt()) await run('npm', ['run', 'build'], { cwd: root });

  sandbox = mkdtempSync(path.join(tmpdir(), 'limitkeeper-package-'));
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', sandbox], { cwd: root });
  const tarball = readdirSync(sandbox).find(name => name.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm pack left no tarball');

  const [first, ...others] = EXPRESS_VERSIONS.map(({ version }) => project(version)) as [string, ...string[]];
  mkdirSync(first);
  writeFileSync(
    path.join(first, 'package.json'),
    JSON.stringify({ name: 'user', version: '1.0.0', private: true }),
  );
  // The peers come from this repository's own node_modules below, so that nothing is fetched.
  await run(
    'npm',
    [
      'install',
      path.join(sandbox, tarball),
      '--legacy-peer-deps',
      '--no-audit',
      '--no-fund',
      '--prefer-offline',
    ],
    { cwd: first },
  );
  for (const other of others) cpSync(first, other, { recursive: true });

  for (const { version, runtime, types } of EXPRESS_VERSIONS) {
    const modules = path.join(project(version), 'node_modules');
    mkdirSync(path.join(modules, '@types'));
    for (const [name, source] of [
      ['express', runtime],
      ['@types/express', types],
      ['@types/node', '@types/node'],
    ] as const) {
      symlinkSync(path.join(root, 'node_modules', source), path.join(modules, name), 'junction');
    }
    for (const name of ['app.ts', 'app.mts', 'app.cts']) {
      cpSync(path.join(__dirname, 'fixtures/app.ts'), path.join(project(version), name));
    }
  }
});

afterAll(() => {
  rmSync(sandbox, { recursive: true, force: true });
});

describe('the tarball', () => {
  const installed = (): string => path.join(project(5), 'node_modules/limitkeeper');

  test('holds the build and nothing of the workshop', () => {
    const strangers = filesBelow(installed()).filter(
      file =>
        !file.startsWith(`dist${path.sep}`) &&
        !/^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md)$/.test(file),
    );
    expect(strangers).toEqual([]);
  });

  test('tells no path of the machine that built it', () => {
    const telling = filesBelow(installed()).filter(file =>
      readFileSync(path.join(installed(), file), 'utf8').includes(root),
    );
    expect(telling).toEqual([]);
  });

  test('installs no package without need', () => {
    const allowed = Object.keys(manifest.dependencies ?? {});
    expect(allowed.filter(name => name !== 'zod')).toEqual([]);
  });
});

describe('the entries', () => {
  test.each(specifiers)('%s exports the same names to import and require', async specifier => {
    const imported = await nodeJson(
      project(5),
      '--input-type=module',
      '--eval',
      `import * as all from '${specifier}'; console.log(JSON.stringify(Object.keys(all).sort()));`,
    );
    const required = await nodeJson(
      project(5),
      '--eval',
      `console.log(JSON.stringify(Object.keys(require('${specifier}')).sort()));`,
    );
    expect(required).toEqual(imported);
    expect(imported).not.toEqual([]);
  });

  test('the main entry has what the documentation names', async () => {
    const names = await nodeJson(
      project(5),
      '--eval',
      `console.log(JSON.stringify(Object.keys(require('limitkeeper'))))`,
    );
    expect(names).toEqual(
      expect.arrayContaining([
        'MemoryStore',
        'byStatus',
        'clientIp',
        'createLimiter',
        'decisionHeaders',
        'default',
        'getRateLimit',
        'isLimitkeeperError',
        'problemBody',
        'rateLimit',
        'subjectHash',
      ]),
    );
  });

  test.each([
    [
      'import',
      '--input-type=module',
      `import d, { rateLimit as r } from 'limitkeeper'; console.log(typeof r, d === r);`,
    ],
    [
      'require',
      '--input-type=commonjs',
      `const all = require('limitkeeper'); console.log(typeof all.rateLimit, all.default === all.rateLimit);`,
    ],
    [
      'dynamic import',
      '--input-type=commonjs',
      `import('limitkeeper').then(all => console.log(typeof all.rateLimit, all.default === all.rateLimit));`,
    ],
  ])('rateLimit is a named export and the default of %s', async (_how, type, code) => {
    expect(await node(project(5), type, '--eval', code)).toBe('function true\n');
  });

  test.each(specifiers.filter(specifier => !WITH_PACKAGES.includes(specifier)))(
    '%s loads its own files and node: modules, no package',
    async specifier => {
      const code = `
        const Module = require('node:module');
        const asked = new Set();
        const load = Module._load;
        Module._load = function (request, ...rest) { asked.add(request); return load.call(this, request, ...rest); };
        require('${specifier}');
        console.log(JSON.stringify({ asked: [...asked], files: Object.keys(require.cache) }));`;
      const { asked, files } = (await nodeJson(project(5), '--eval', code)) as Record<
        'asked' | 'files',
        string[]
      >;
      const others = asked.filter(
        name => name !== specifier && !name.startsWith('node:') && !name.startsWith('.'),
      );
      expect(others).toEqual([]);
      const own = path.join('node_modules', 'limitkeeper', 'dist') + path.sep;
      expect(files.filter(file => !file.includes(own))).toEqual([]);
      expect(files).not.toEqual([]);
    },
  );

  // The promise is 10 ms. A shared machine gets four times that and the fastest of nine, so that this test fails for what
  // the package loads and not for what else runs.
  test('requiring limitkeeper takes less than 10 ms', async () => {
    const code = `
      const start = performance.now();
      require('limitkeeper');
      console.log(performance.now() - start);`;
    const times: number[] = [];
    for (let i = 0; i < 9; i++) times.push(Number(await node(project(5), '--eval', code)));
    expect(Math.min(...times)).toBeLessThan(10 * 4);
  });
});

describe.each(EXPRESS_VERSIONS)('with Express $version', ({ version }) => {
  test('the installed Express is of this version', async () => {
    const found = await node(
      project(version),
      '--eval',
      `console.log(require('express/package.json').version)`,
    );
    expect(found).toMatch(new RegExp(`^${String(version)}\\.`));
  });

  test('a program compiles as ES module and CommonJS (node16) and runs as both', async () => {
    const output = await typeCheck(project(version), ['app.mts', 'app.cts'], { module: 'node16' });
    expect(output).toBe('');
    for (const file of ['app.mjs', 'app.cjs']) {
      expect(await nodeJson(project(version), file)).toEqual({
        sameFunction: true,
        functions: true,
        code: 'string',
        allowed: [true, false],
        refusals: 1,
        hello: { status: 200, body: { remaining: 119, scope: 'api.ip' } },
        // The middleware; an admin router without a key, and one that lets in; the service without a user.
        statuses: [200, 429, 503, 403, 200, 200, 400],
      });
    }
  });

  test.each([
    [
      'a bundler',
      {
        module: 'esnext',
        moduleResolution: 'bundler',
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
      },
    ],
    ['legacy resolution', { module: 'commonjs', moduleResolution: 'node10', ignoreDeprecations: '6.0' }],
  ])('a program type-checks for %s', async (_what, options) => {
    expect(await typeCheck(project(version), ['app.ts'], { ...options, noEmit: true })).toBe('');
  });
});
