import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLimiter } from '../../src/index.js';
import type { FailMode, Store } from '../../src/index.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { FaultyStore } from '../support/faulty-store.js';
import { DownStore } from '../support/down-store.js';

const MINUTE = 60_000;
const ENVIRONMENT = { ...process.env };

let warnings: string[];
let now: number;

beforeEach(() => {
  delete process.env['LIMITKEEPER_NO_WARNINGS'];
  warnings = [];
  now = 1000;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  jest.spyOn(process, 'emitWarning').mockImplementation(((text: string, options: object) => {
    expect(options).toEqual({ type: 'LimitkeeperWarning', code: 'LIMITKEEPER_STORE_AWAY' });
    warnings.push(text);
  }) as never);
});

afterEach(() => {
  jest.restoreAllMocks();
  process.env = { ...ENVIRONMENT };
});

const limiterOf = (store: Store, scope: string, failMode: FailMode = 'open') =>
  createLimiter({ scope, limit: 5, windowSec: 60, store, failMode });

const SEE =
  ' See https://github.com/limitkeeper/limitkeeper/blob/main/docs/warnings.md#limitkeeper_store_away';

describe('L1 a store that is away', () => {
  test.each<[FailMode, string]>([
    ['open', "requests pass uncounted (failMode 'open': login)"],
    ['closed', "requests are refused with 503 (failMode 'closed': login)"],
    ['local', "each process counts for itself (failMode 'local': login)"],
  ])('is warned of once, with the fail mode %s, the scope, and what it said', async (failMode, meanwhile) => {
    const limiter = limiterOf(new DownStore(), 'login', failMode);
    for (let i = 0; i < 20; i += 1) await limiter.consume('alice');
    expect(warnings).toEqual([
      `The store failed: connection refused. Until the store answers again, ${meanwhile}.${SEE}`,
    ]);
  });

  test('is warned of once for all its limiters, and names them all', async () => {
    const store = new DownStore();
    const api = limiterOf(store, 'api.ip');
    const login = limiterOf(store, 'login', 'local');
    const search = limiterOf(store, 'search');
    for (const limiter of [login, api, search]) await limiter.consume('alice');
    expect(warnings).toEqual([
      expect.stringContaining(
        "requests pass uncounted (failMode 'open': api.ip, search); each process counts for itself (failMode 'local': login).",
      ),
    ]);
  });

  test('of many scopes names some', async () => {
    const store = new DownStore();
    const limiters = Array.from({ length: 60 }, (_, i) => limiterOf(store, `s${String(i)}`));
    await limiters[0]?.consume('alice');
    expect(warnings[0]).toContain("(failMode 'open': s0, s1, s2, s3, s4, s5, s6, s7 and 42 more).");
  });

  test('leads to its section of the docs', () => {
    const docs = readFileSync(join(__dirname, '../../docs/warnings.md'), 'utf8');
    expect(docs).toContain('\n## LIMITKEEPER_STORE_AWAY\n');
  });

  test('two stores are two warnings', async () => {
    for (const scope of ['a', 'b']) await limiterOf(new DownStore(), scope).consume('alice');
    expect(warnings).toHaveLength(2);
  });

  test('that comes and goes is warned of once a minute at most, and an outage is never passed over', async () => {
    const store = new FaultyStore(new MemoryStore());
    const limiter = limiterOf(store, 'login');
    const outage = async () => {
      store.fault = 'rejects';
      await limiter.consume('alice');
    };
    const recovery = async () => {
      store.fault = undefined;
      await limiter.consume('alice');
    };
    await outage();
    expect(warnings).toHaveLength(1);
    for (let i = 0; i < 5; i += 1) {
      await recovery();
      now += 10_000;
      await outage();
    }
    expect(warnings).toHaveLength(1);
    // The one that lasts was not warned of when it began.
    now += 10_000;
    await limiter.consume('alice');
    expect(warnings).toHaveLength(2);
    now += 60 * MINUTE;
    await limiter.consume('alice');
    expect(warnings).toHaveLength(2);
    await recovery();
    await outage();
    expect(warnings).toHaveLength(3);
  });

  test('whose error comes to light later is warned of again, a minute later', async () => {
    const store: DownStore & { lastError?: Error } = new DownStore();
    jest.spyOn(store, 'decide').mockImplementation(() => {
      throw Object.assign(new Error('limitkeeper: no answer.'), { code: 'ERR_LIMITKEEPER_STORE' });
    });
    const limiter = limiterOf(store, 'login');
    await limiter.consume('alice');
    now += 2 * MINUTE;
    await limiter.consume('alice');
    expect(warnings).toEqual([expect.stringContaining('No answer. Until')]);
    store.lastError = new Error('getaddrinfo ENOTFOUND redis.internal');
    await limiter.consume('alice');
    now += 2 * MINUTE;
    await limiter.consume('alice');
    expect(warnings).toEqual([
      expect.any(String),
      expect.stringContaining('No answer: getaddrinfo ENOTFOUND redis.internal. Until'),
    ]);
  });

  test.each([
    ['effects', (limiter: ReturnType<typeof limiterOf>) => limiter.block('alice', 60)],
    ['a look', (limiter: ReturnType<typeof limiterOf>) => limiter.peek('alice')],
  ])('is noticed by %s, too', async (_what, act) => {
    await act(limiterOf(new DownStore(), 'login'));
    expect(warnings).toHaveLength(1);
  });

  test('is warned of also where somebody listens to the limiter', async () => {
    const limiter = limiterOf(new DownStore(), 'login');
    const heard: string[] = [];
    limiter.on('store-error', () => heard.push('store-error'));
    limiter.on('degraded', () => heard.push('degraded'));
    await limiter.consume('alice');
    expect(heard).toEqual(['store-error', 'degraded']);
    expect(warnings).toHaveLength(1);
  });

  test.each(['LIMITKEEPER_STORE_AWAY', 'all'])('is silent with LIMITKEEPER_NO_WARNINGS=%s', async list => {
    process.env['LIMITKEEPER_NO_WARNINGS'] = list;
    await limiterOf(new DownStore(), 'login').consume('alice');
    expect(warnings).toEqual([]);
  });

  test('a store that works is never warned of', async () => {
    const limiter = limiterOf(new MemoryStore(), 'login');
    for (let i = 0; i < 20; i += 1) await limiter.consume('alice');
    expect(warnings).toEqual([]);
  });

  test('two copies of the library warn once', async () => {
    const store = new DownStore();
    await limiterOf(store, 'login').consume('alice');
    await jest.isolateModulesAsync(async () => {
      const copy = (await import('../../src/index.js')) as { createLimiter: typeof createLimiter };
      expect(copy.createLimiter).not.toBe(createLimiter);
      await copy.createLimiter({ scope: 'other', limit: 5, windowSec: 60, store }).consume('alice');
    });
    expect(warnings).toHaveLength(1);
  });
});

describe('L1 `cause` of what listeners are told', () => {
  const errorsOf = async (store: Store, n: number) => {
    const limiter = limiterOf(store, 'login');
    const errors: { code: string; cause?: unknown }[] = [];
    limiter.on('store-error', ({ error }) => errors.push(error));
    for (let i = 0; i < n; i += 1) await limiter.consume('alice');
    return errors;
  };

  test("is the store's own error, also while it is left alone", async () => {
    const errors = await errorsOf(new DownStore(), 8);
    expect(errors.map(({ code }) => code.slice(16))).toEqual([
      ...Array<string>(5).fill('STORE'),
      ...Array<string>(3).fill('STORE_SUSPENDED'),
    ]);
    for (const { cause } of errors) expect(cause).toMatchObject({ message: 'connection refused' });
  });

  test('is what the connection of the store failed with, where a call was not told', async () => {
    const lastError = new Error('WRONGPASS');
    const failure = () => Object.assign(new Error('away'), { code: 'ERR_LIMITKEEPER_STORE' });
    const decide = jest.fn(() => {
      throw failure();
    });
    const [first] = await errorsOf(Object.assign(new DownStore(), { decide, lastError }), 1);
    expect(first?.cause).toBe(lastError);
  });
});
