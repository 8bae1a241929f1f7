// What of the package is read, and when: of the package as users get it.
import { build } from 'esbuild';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { node, nodeJson, pack, root, run } from '../support/packed.js';

jest.setTimeout(300_000);

let sandbox: string;
const app = (): string => path.join(sandbox, 'app');
const dist = (): string => path.join(app(), 'node_modules/limitkeeper/dist');

beforeAll(async () => {
  sandbox = mkdtempSync(path.join(tmpdir(), 'limitkeeper-loading-'));
  const tarball = await pack(sandbox);
  mkdirSync(app());
  writeFileSync(path.join(app(), 'package.json'), JSON.stringify({ name: 'user', private: true }));
  await run('npm', ['install', tarball, '--offline', '--no-audit', '--no-fund'], { cwd: app() });
  symlinkSync(path.join(root, 'node_modules/express'), path.join(app(), 'node_modules/express'), 'junction');
  cpSync(path.join(__dirname, 'fixtures/first-requests.cjs'), path.join(app(), 'first-requests.cjs'));
  cpSync(path.join(__dirname, 'fixtures/bundled.js'), path.join(app(), 'bundled.js'));
});

afterAll(() => {
  rmSync(sandbox, { recursive: true, force: true });
});

/** Prints which files of dist have been read so far. */
const READ = `
  const { _cache } = require('node:module');
  const read = () => Object.keys(_cache).filter(file => file.includes('node_modules/limitkeeper/')).map(file => file.split(/dist./)[1]);
  const print = () => console.log(JSON.stringify(read()));`;

const parsed = (files: unknown): Buffer =>
  Buffer.concat((files as string[]).map(file => readFileSync(path.join(dist(), file))));

describe('what is read of limitkeeper', () => {
  test('is at most 30 kB, compressed by brotli', async () => {
    const files = await nodeJson(app(), '--eval', `${READ} require('limitkeeper'); print();`);
    expect(files).toEqual(['index.cjs', 'limitkeeper.cjs']);
    expect(brotliCompressSync(parsed(files)).length).toBeLessThanOrEqual(30_000);
  });

  test('is the same for import, and one library for both', async () => {
    const code = `${READ}
      import('limitkeeper').then(imported => {
        print();
        const required = require('limitkeeper');
        console.log(JSON.stringify(Object.keys(required).filter(name => required[name] !== imported[name])));
      });`;
    const [files, different] = (await node(app(), '--eval', code))
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as unknown);
    expect(files).toEqual(['index.cjs', 'limitkeeper.cjs']);
    expect(different).toEqual([]);
    expect(readFileSync(path.join(dist(), 'index.js')).length).toBeLessThan(500);
  });

  test('is what answers the first requests, also the refused', async () => {
    expect(await nodeJson(app(), 'first-requests.cjs')).toEqual({
      statuses: [200, 429, 429],
      readBefore: ['index.cjs', 'limitkeeper.cjs'],
      readAfter: ['index.cjs', 'limitkeeper.cjs'],
    });
  });

  test('is enough where the process has no file descriptor left', async () => {
    const command = `ulimit -n 64 && exec "${process.execPath}" first-requests.cjs exhausted`;
    const { stdout } = await run('sh', ['-c', command], { cwd: app(), timeout: 60_000 });
    expect(JSON.parse(stdout)).toEqual({
      statuses: [200, 429, 429],
      readBefore: ['index.cjs', 'limitkeeper.cjs'],
      readAfter: ['index.cjs', 'limitkeeper.cjs'],
      warning: 'LIMITKEEPER_TRUST_PROXY_OFF',
    });
  });
});

describe('what is read later', () => {
  test('the store made of a backend, when one is made', async () => {
    const code = `${READ}
      const { backendStore } = require('limitkeeper');
      if (typeof backendStore({}).decide !== 'function') throw new Error('no store');
      print();`;
    expect(await nodeJson(app(), '--eval', code)).toEqual([
      'index.cjs',
      'limitkeeper.cjs',
      'backend-store.cjs',
    ]);
  });

  test('what settles at the end of a request, when a limiter is made that does, and not with a request', async () => {
    const code = `${READ}
      const { byStatus, rateLimit } = require('limitkeeper');
      rateLimit({ scope: 'a', limit: 1, windowSec: 60, count: 'failures', outcome: byStatus });
      print();`;
    expect(await nodeJson(app(), '--eval', code)).toEqual(['index.cjs', 'limitkeeper.cjs', 'settle.cjs']);
  });

  test('the texts of the warnings, with the first of them', async () => {
    const code = `${READ}
      process.on('warning', ({ message }) => { console.log(JSON.stringify({ message, files: read() })); });
      require('limitkeeper').rateLimit({ scope: 'a', limit: 1, windowSec: 60_000 });`;
    expect(await nodeJson(app(), '--no-warnings', '--eval', code)).toEqual({
      message: expect.stringMatching(/windowSec.*looks like milliseconds/) as string,
      files: ['index.cjs', 'limitkeeper.cjs', 'warning-texts.cjs'],
    });
  });
});

test('a mistake that nobody catches says where it was, in a few lines', async () => {
  const failed = node(
    app(),
    '--eval',
    `require('limitkeeper').rateLimit({ scope: 'a', limit: '1', windowSec: 1 })`,
  );
  const stderr = await failed.then(
    () => '',
    (error: unknown) => (error as { stderr: string }).stderr,
  );
  expect(stderr).toMatch(/at \w*[Rr]ule\w* \(.*limitkeeper\.cjs:\d+:\d+\)/);
  expect(stderr).toMatch(/ERR_LIMITKEEPER_OPTION_TYPE/);
  expect(stderr.length).toBeLessThan(3000);
});

// Where a bundle is, there need not be a node_modules.
test.each(['cjs', 'esm'] as const)(
  'a bundle of a program (%s) has all of it inside, and what waits as well',
  async format => {
    const folder = mkdtempSync(path.join(sandbox, 'bundle-'));
    const outfile = path.join(folder, format === 'esm' ? 'out.mjs' : 'out.cjs');
    // What esbuild's own documentation tells to give where a bundled CommonJS module requires a module of Node's.
    const banner = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;
    const { warnings } = await build({
      entryPoints: [path.join(app(), 'bundled.js')],
      outfile,
      bundle: true,
      platform: 'node',
      format,
      ...(format === 'esm' ? { banner: { js: banner } } : {}),
      logLevel: 'silent',
    });
    expect(warnings).toEqual([]);
    expect(await nodeJson(folder, '--no-warnings', outfile)).toEqual({
      allowed: [true, false],
      store: 'function',
      sameFunction: true,
      others: ['function', 'function'],
      warning: expect.stringContaining('looks like milliseconds') as string,
    });
  },
);
