import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CreationWatch, warnAboutStore, warnOnce } from '../../src/express/warnings.js';
import type { WarningCode } from '../../src/core/warn-once.js';
import { forgetWarnings, runFixture, watchWarnings } from '../support/warnings.js';

const CODES: WarningCode[] = [
  'LIMITKEEPER_TRUST_PROXY_TRUE',
  'LIMITKEEPER_TRUST_PROXY_OFF',
  'LIMITKEEPER_ONE_PRIVATE_ADDRESS',
  'LIMITKEEPER_MOUNTED_TWICE',
  'LIMITKEEPER_MEMORY_STORE_PER_PROCESS',
  'LIMITKEEPER_CREATED_IN_HANDLER',
  'LIMITKEEPER_HEADERS_SENT_EARLY',
  'LIMITKEEPER_OUTCOME_FAILED',
  'LIMITKEEPER_LOGIN_WITHOUT_OUTCOME',
  'LIMITKEEPER_LOGIN_BEFORE_BODY_PARSER',
  'LIMITKEEPER_LOGIN_WITHOUT_EMAIL',
  'LIMITKEEPER_NOTHING_RESERVED',
  'LIMITKEEPER_SCOPE_COUNTED_TWICE',
  'LIMITKEEPER_LOOKS_LIKE_MILLISECONDS',
];
// A process of its own that translates TypeScript takes its time on a busy machine.
jest.setTimeout(60_000);

const ENVIRONMENT = { ...process.env };

beforeEach(forgetWarnings);

afterEach(() => {
  jest.restoreAllMocks();
  process.env = { ...ENVIRONMENT };
});

describe('a warning', () => {
  test.each(CODES)('%s comes once, as one line that leads to its section of the docs', code => {
    const emit = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    for (let i = 0; i < 3; i += 1) warnOnce(code);
    expect(emit).toHaveBeenCalledTimes(1);
    const [text, options] = emit.mock.calls[0] as unknown as [string, object];
    expect(options).toEqual({ type: 'LimitkeeperWarning', code });
    expect(text).not.toMatch(/\n/);
    const [, file, section] = /\/blob\/main\/(docs\/[\w-]+\.md)#(\w+)$/.exec(text) ?? [];
    const headings = readFileSync(join(__dirname, '../..', file!), 'utf8').match(/^## .+$/gm) ?? [];
    expect(headings.map(heading => heading.slice(3).toLowerCase())).toContain(section);
  });

  test('one code silences no other', () => {
    const codes = watchWarnings();
    for (const code of CODES) warnOnce(code);
    for (const code of CODES) warnOnce(code);
    expect(codes).toEqual(CODES);
  });

  test('two copies of the library in a process warn once', () => {
    const codes = watchWarnings();
    warnOnce('LIMITKEEPER_MOUNTED_TWICE');
    jest.isolateModules(() => {
      // eslint-disable-next-line @typescript-eslint/no-require-imports
      const copy = require('../../src/core/warn-once.js') as { warnOnce: typeof warnOnce };
      expect(copy.warnOnce).not.toBe(warnOnce);
      copy.warnOnce('LIMITKEEPER_MOUNTED_TWICE');
    });
    expect(codes).toEqual(['LIMITKEEPER_MOUNTED_TWICE']);
  });

  test.each<[list: string, left: WarningCode[]]>([
    ['LIMITKEEPER_TRUST_PROXY_OFF', CODES.filter(code => code !== 'LIMITKEEPER_TRUST_PROXY_OFF')],
    [
      'LIMITKEEPER_TRUST_PROXY_OFF, LIMITKEEPER_MOUNTED_TWICE',
      CODES.filter(code => !/PROXY_OFF|MOUNTED_TWICE/.test(code)),
    ],
    ['all', []],
    ['', CODES],
    ['LIMITKEEPER_TRUST_PROXY', CODES],
  ])('LIMITKEEPER_NO_WARNINGS=%j, set by the program itself, leaves the others', (list, left) => {
    const codes = watchWarnings();
    process.env['LIMITKEEPER_NO_WARNINGS'] = list;
    for (const code of CODES) warnOnce(code);
    expect(codes).toEqual(left);
  });
});

describe('P99 a store that counts in one process of several', () => {
  const CODE = 'LIMITKEEPER_MEMORY_STORE_PER_PROCESS';

  test.each([
    ['PM2', 'NODE_APP_INSTANCE', '0'],
    ['PM2', 'pm_id', '3'],
    ['AWS Lambda', 'AWS_LAMBDA_FUNCTION_NAME', 'api'],
    ['Vercel', 'VERCEL', '1'],
    ['Netlify', 'NETLIFY', 'true'],
    ['Cloud Run', 'K_SERVICE', 'api'],
    ['Cloud Functions', 'FUNCTION_TARGET', 'api'],
    ['Azure Functions', 'FUNCTIONS_WORKER_RUNTIME', 'node'],
  ])('%s (%s)', (_runtime, name, value) => {
    const codes = watchWarnings();
    process.env[name] = value;
    warnAboutStore({ perProcess: true });
    expect(codes).toEqual([CODE]);
  });

  test('a shared store is fine anywhere', () => {
    const codes = watchWarnings();
    process.env['AWS_LAMBDA_FUNCTION_NAME'] = 'api';
    warnAboutStore({});
    warnAboutStore({ perProcess: false });
    expect(codes).toEqual([]);
  });

  test('a variable that is set to nothing is none', () => {
    const codes = watchWarnings();
    process.env['VERCEL'] = '';
    warnAboutStore({ perProcess: true });
    expect(codes).toEqual([]);
  });

  test('a worker of node:cluster warns, once', async () => {
    const { stderr, code } = await runFixture('warn.ts', { args: ['cluster'] });
    expect(stderr.match(/\[LIMITKEEPER_\w+\]/g)).toEqual([`[${CODE}]`]);
    expect(code).toBe(0);
  });

  test('any other child process, and a process alone, does not', async () => {
    const [forked, alone] = await Promise.all([
      runFixture('warn.ts', { args: ['fork'] }),
      runFixture('warn.ts', { args: ['store'] }),
    ]);
    expect([forked, alone]).toEqual([
      { stdout: '', stderr: '', code: 0 },
      { stdout: '', stderr: '', code: 0 },
    ]);
  });
});

describe('P33 an instance made by a request handler', () => {
  // How many instances were used at once is kept for the life of a process, so each test is one.
  const inFreshCopy = async (body: (Watch: typeof CreationWatch) => Promise<void>): Promise<void> => {
    let Watch = CreationWatch;
    jest.isolateModules(() => {
      // eslint-disable-next-line @typescript-eslint/no-require-imports
      ({ CreationWatch: Watch } = require('../../src/express/warnings.js') as {
        CreationWatch: typeof CreationWatch;
      });
    });
    await body(Watch);
  };

  test('is noticed when the second one is', () =>
    inFreshCopy(async Watch => {
      const codes = watchWarnings();
      const handle = async (): Promise<void> => {
        await Promise.resolve();
        new Watch().observe();
      };
      await handle();
      expect(codes).toEqual([]);
      await handle();
      expect(codes).toEqual(['LIMITKEEPER_CREATED_IN_HANDLER']);
    }));

  test('instances made at start are not, however soon they are used and however many there are', () =>
    inFreshCopy(async Watch => {
      const codes = watchWarnings();
      const watches = Array.from({ length: 10 }, () => new Watch());
      await Promise.resolve();
      for (const watch of watches) {
        watch.observe();
        watch.observe();
      }
      expect(codes).toEqual([]);
    }));

  test('one instance met by many requests at once is one', () =>
    inFreshCopy(async Watch => {
      const codes = watchWarnings();
      const watch = new Watch();
      for (let i = 0; i < 5; i += 1) watch.observe();
      expect(codes).toEqual([]);
    }));

  test('fake timers of the user do not make it suspicious', () =>
    inFreshCopy(async Watch => {
      const codes = watchWarnings();
      jest.useFakeTimers();
      try {
        const watches = [new Watch(), new Watch(), new Watch()];
        await Promise.resolve();
        for (const watch of watches) watch.observe();
      } finally {
        jest.useRealTimers();
      }
      expect(codes).toEqual([]);
    }));
});

describe('P01 in a real process', () => {
  const lines = (stderr: string): string[] => stderr.split('\n').filter(line => line !== '');

  test('150 requests that were forwarded make one line, no stack, no address', async () => {
    const { stderr, code } = await runFixture('warn.ts', { args: ['forwarded'] });
    const [warning, hint, ...rest] = lines(stderr);
    expect(warning).toMatch(/\[LIMITKEEPER_TRUST_PROXY_OFF\] LimitkeeperWarning: .*'trust proxy'.*app\.set/);
    // Node's own, once in a process: how to see a stack.
    expect(hint).toMatch(/--trace-warnings/);
    expect(rest).toEqual([]);
    expect(stderr).not.toMatch(/198\.51\.100\.77|127\.0\.0\.1|\n\s+at /);
    expect(code).toBe(0);
  });

  test.each([
    ['the environment', { env: { LIMITKEEPER_NO_WARNINGS: 'LIMITKEEPER_TRUST_PROXY_OFF' } }],
    ['Node', { nodeArgs: ['--disable-warning=LIMITKEEPER_TRUST_PROXY_OFF'] }],
  ])('"I know" can be said by %s', async (_way, options) => {
    expect(await runFixture('warn.ts', { args: ['forwarded'], ...options })).toEqual({
      stdout: '',
      stderr: '',
      code: 0,
    });
  });
});
