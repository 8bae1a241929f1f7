// Tests the package as users get it: packed, installed from the tarball into an empty project, imported both ways.
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
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
import { startRedis } from '../support/redis/server.js';
import { filesBelow, node, nodeJson, pack, root, run, typeCheck } from '../support/packed.js';

jest.setTimeout(300_000);

interface Manifest {
  exports: Record<string, unknown>;
  dependencies?: Record<string, string>;
}

const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as Manifest;

/** 'limitkeeper', 'limitkeeper/presets', … */
const specifiers = Object.keys(manifest.exports)
  .filter(subpath => subpath !== './package.json')
  .map(subpath => `limitkeeper${subpath.slice(1)}`);

/** The entries that are routers of Express; all others load node: modules only. */
const ROUTERS = ['limitkeeper/admin', 'limitkeeper/service'];

const EXPRESS_VERSIONS = [
  { version: 5, runtime: 'express', types: '@types/express' },
  { version: 4, runtime: 'express4', types: '@types/express4' },
] as const;

let sandbox: string;
let tarball: string;
/** A project of somebody who has installed nothing but limitkeeper. */
const alone = (): string => path.join(sandbox, 'alone');
const project = (version: number): string => path.join(sandbox, `express${String(version)}`);

beforeAll(async () => {
  sandbox = mkdtempSync(path.join(tmpdir(), 'limitkeeper-package-'));
  tarball = await pack(sandbox);

  mkdirSync(alone());
  writeFileSync(
    path.join(alone(), 'package.json'),
    JSON.stringify({ name: 'user', version: '1.0.0', private: true }),
  );
  // Offline: whatever it needed beside itself would have to be fetched.
  await run('npm', ['install', tarball, '--offline', '--no-audit', '--no-fund'], { cwd: alone() });
  for (const { version } of EXPRESS_VERSIONS) cpSync(alone(), project(version), { recursive: true });

  // The peers come from this repository's own node_modules.
  const give = (folder: string, packages: readonly (readonly [name: string, source: string])[]): void => {
    const modules = path.join(folder, 'node_modules');
    mkdirSync(path.join(modules, '@types'));
    for (const [name, source] of packages) {
      symlinkSync(path.join(root, 'node_modules', source), path.join(modules, name), 'junction');
    }
  };
  give(alone(), [['@types/node', '@types/node']]);
  cpSync(path.join(__dirname, 'fixtures/alone.ts'), path.join(alone(), 'alone.mts'));
  cpSync(path.join(__dirname, 'fixtures/alone.ts'), path.join(alone(), 'alone.cts'));
  for (const { version, runtime, types } of EXPRESS_VERSIONS) {
    give(project(version), [
      ['express', runtime],
      ['ioredis', 'ioredis'],
      ['@types/express', types],
      ['@types/node', '@types/node'],
    ]);
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

  test('holds the build, what there is to read, and nothing of the workshop', () => {
    const files = filesBelow(installed());
    const documents = files.filter(file => !/^(?:dist|examples)[\\/]/.test(file)).sort();
    // How it is built and what it costs is for those who look into the repository.
    const ofTheWorkshop = ['architecture.md', 'performance.md'];
    const pages = readdirSync(path.join(root, 'docs')).filter(
      name => name.endsWith('.md') && !ofTheWorkshop.includes(name),
    );
    expect(documents).toEqual(
      [
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'SECURITY.md',
        'package.json',
        ...pages.map(name => path.join('docs', name)),
      ].sort(),
    );
    expect(files).toContain(path.join('examples', 'demo', 'app.ts'));
    expect(files).toContain(path.join('dist', 'THIRD-PARTY.md'));
  });

  // Above all, no zod in one piece: `import { z }` would bring in all its languages.
  test('is small', () => {
    expect(statSync(tarball).size).toBeLessThan(200_000);
  });

  test('says where it comes from and where to complain', () => {
    const { repository, bugs, homepage } = JSON.parse(
      readFileSync(path.join(installed(), 'package.json'), 'utf8'),
    ) as Record<string, unknown>;
    expect({ repository, bugs, homepage }).toEqual({
      repository: { type: 'git', url: 'git+https://github.com/limitkeeper/limitkeeper.git' },
      bugs: { url: 'https://github.com/limitkeeper/limitkeeper/issues' },
      homepage: 'https://github.com/limitkeeper/limitkeeper#readme',
    });
  });

  test('tells no path of the machine that built it', () => {
    const telling = filesBelow(installed()).filter(file =>
      readFileSync(path.join(installed(), file), 'utf8').includes(root),
    );
    expect(telling).toEqual([]);
  });

  test('brings no other package with it', () => {
    expect(manifest.dependencies).toBeUndefined();
    expect(readdirSync(path.join(alone(), 'node_modules')).filter(name => !/^[.@]/.test(name))).toEqual([
      'limitkeeper',
    ]);
  });
});

test('npm pack in a checkout that was never built builds first', async () => {
  const checkout = path.join(sandbox, 'checkout');
  const left = ['node_modules', 'dist', '.git'].map(name => path.join(root, name));
  cpSync(root, checkout, { recursive: true, filter: source => !left.includes(source) });
  symlinkSync(path.join(root, 'node_modules'), path.join(checkout, 'node_modules'), 'junction');
  await run('npm', ['pack', '--pack-destination', checkout], { cwd: checkout });
  const inside = readdirSync(checkout).find(name => name.endsWith('.tgz'))!;
  const { stdout } = await run('tar', ['-tzf', inside], { cwd: checkout });
  for (const name of ['index.js', 'index.cjs', 'index.d.ts', 'THIRD-PARTY.md']) {
    expect(stdout.split('\n')).toContain(`package/dist/${name}`);
  }
});

// By the commands that they begin with, and so that nothing of a checkout is there to help.
describe('the examples of the installed package', () => {
  /** What it says until `enough` is among it. */
  const says = async (name: string, enough: RegExp, env: NodeJS.ProcessEnv = {}): Promise<string> => {
    const example = spawn(
      process.execPath,
      [path.join(root, 'node_modules/tsx/dist/cli.mjs'), `node_modules/limitkeeper/examples/${name}.ts`],
      { cwd: project(5), env: { PATH: process.env['PATH'], PORT: '0', ...env } },
    );
    let said = '';
    await new Promise(resolve => {
      for (const stream of [example.stdout, example.stderr]) {
        stream.on('data', chunk => {
          said += String(chunk);
          if (enough.test(said)) resolve(undefined);
        });
      }
      example.on('close', resolve);
    });
    example.kill();
    return said;
  };

  test.each([
    ['demo/server', /limitkeeper demo on http/],
    ['demo/smoke', /The demo limits what it says\./],
    ['admin/server', /Listening on/],
    ['service/server', /Listening on/],
  ])('%s', async (name, enough) => {
    expect(await says(name, enough)).toMatch(enough);
  });

  test('redis/two', async () => {
    const redis = await startRedis();
    try {
      expect(await says('redis/two', /passed\.$/m, { REDIS_URL: redis.url })).toContain('10 of 14 passed.');
    } finally {
      await redis.stop();
    }
  });

  test('say how they are run', () => {
    for (const name of ['admin/server', 'service/server', 'redis/app', 'redis/two']) {
      const text = readFileSync(path.join(root, `examples/${name}.ts`), 'utf8');
      expect(text).toContain(`npx --yes tsx node_modules/limitkeeper/examples/${name}.ts\n`);
      expect(text).toContain(`npm run example examples/${name}.ts)`);
    }
  });
});

describe('without Express', () => {
  test('createLimiter serves another server, as ES module and CommonJS, and compiles though Express is not there', async () => {
    expect(existsSync(path.join(alone(), 'node_modules/express'))).toBe(false);
    const output = await typeCheck(alone(), ['alone.mts', 'alone.cts'], {
      module: 'node16',
      skipLibCheck: false,
      typeRoots: ['node_modules/@types'],
    });
    expect(output).toBe('');
    for (const file of ['alone.mjs', 'alone.cjs']) {
      expect(await nodeJson(alone(), file)).toEqual({ statuses: [200, 200, 429], redis: 'function' });
    }
  });

  test.each(ROUTERS)('%s says what is missing', async specifier => {
    const missing = async (...args: string[]): Promise<string> =>
      node(alone(), ...args).then(
        () => 'it loaded',
        (error: unknown) => (error as { stderr: string }).stderr,
      );
    expect(await missing('--input-type=module', '--eval', `import '${specifier}'`)).toMatch(
      /Cannot find module 'express'[^]*limitkeeper/,
    );
    expect(await missing('--input-type=commonjs', '--eval', `require('${specifier}')`)).toMatch(
      /Cannot find module 'express'[^]*limitkeeper/,
    );
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

  test.each(specifiers.filter(specifier => !ROUTERS.includes(specifier)))(
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
