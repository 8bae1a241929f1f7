// L3, L4: what newcomers wrote, and what they are told.
import type { ServerResponse } from 'node:http';
import type { RequestHandler } from 'express';
import { byStatus, clientIp, createLimiter, getRateLimit, MemoryStore, rateLimit } from 'limitkeeper';
import { adminRouter } from 'limitkeeper/admin';
import { apiLimits, loginLimits } from 'limitkeeper/presets';
import { rateRouter } from 'limitkeeper/service';
import { FakeClock } from 'limitkeeper/testing';
import { looksLikeMilliseconds } from '../../src/core/looks-like-ms.js';
import { call, closeServers, EXPRESSES, serve } from '../support/http.js';
import { limited } from '../support/limited.js';
import { forgetWarnings, watchWarnings } from '../support/warnings.js';

beforeEach(forgetWarnings);
afterEach(async () => {
  jest.restoreAllMocks();
  await closeServers();
});

const RULE = { scope: 'x', limit: 5, windowSec: 60 } as const;
const limiter = createLimiter({ ...RULE, store: new MemoryStore() });
/** As JavaScript calls it, where no compiler objects. */
const loose = (value: unknown): never => value as never;

async function mistake(make: () => unknown): Promise<{ code?: string; option?: string; message: string }> {
  try {
    await make();
  } catch (error) {
    return error as { message: string };
  }
  throw new Error('nothing was thrown');
}

describe.each(EXPRESSES)('%s', (_name, express) => {
  async function ask(handlers: RequestHandler[], times = 1): Promise<void> {
    const app = express();
    app.set('trust proxy', 1);
    app.use(...handlers, (_req: unknown, res: { send: (text: string) => unknown }) => res.send('ok'));
    const url = await serve(app);
    for (let i = 0; i < times; i += 1) await call(url, { headers: { 'X-Forwarded-For': '10.0.0.5' } });
  }

  describe('L3: behind a load balancer', () => {
    const options = { ...RULE, limit: 1000 };

    test.each<[what: string, options: object, trust: unknown, expected: string[]]>([
      ['counted by user', { ...options, keyFn: () => 'alice' }, 1, []],
      ['counted by user, without trust proxy', { ...options, keyFn: () => 'alice' }, false, []],
      ['counted by address', options, 1, ['LIMITKEEPER_ONE_PRIVATE_ADDRESS']],
      ['counted by address, without trust proxy', options, false, ['LIMITKEEPER_TRUST_PROXY_OFF']],
      [
        'one rule of two by address',
        {
          rules: [
            { ...options, keyFn: () => 'alice' },
            { ...options, scope: 'ip' },
          ],
        },
        1,
        ['LIMITKEEPER_ONE_PRIVATE_ADDRESS'],
      ],
      [
        'the one by address is off',
        {
          rules: [
            { ...options, keyFn: () => 'alice' },
            { ...options, scope: 'ip', mode: 'off' },
          ],
        },
        1,
        [],
      ],
    ])('%s', async (_what, settings, trustProxy, expected) => {
      const warnings = watchWarnings();
      const { get } = await limited(express, settings, { trustProxy });
      for (let i = 0; i < 101; i += 1) await get({ 'X-Forwarded-For': '10.0.0.5' });
      expect(warnings).toEqual(expected);
    });
  });

  describe('L4: settle() where nothing is reserved', () => {
    const settle: RequestHandler = async (req, _res, next) => {
      await getRateLimit(req).settle(3);
      next();
    };
    const one = (options: object): RateLimitHandler =>
      rateLimit({ ...RULE, store: new MemoryStore(), ...options });
    type RateLimitHandler = ReturnType<typeof rateLimit>;

    test.each<[what: string, handlers: () => RequestHandler[], expected: string[]]>([
      ['no limiter at all', () => [settle], ['LIMITKEEPER_NOTHING_RESERVED']],
      ['a limiter without reserve', () => [one({}), settle, settle], ['LIMITKEEPER_NOTHING_RESERVED']],
      ['a limiter with it', () => [one({ reserve: true }), settle, settle], []],
      ['one of two with it', () => [one({}), one({ scope: 'y', reserve: true }), settle], []],
      ['no part of this request', () => [one({ reserve: true, when: () => false }), settle], []],
      ['skipped', () => [one({ reserve: true, skip: () => true }), settle], []],
      ['off', () => [one({ reserve: true, mode: 'off' }), settle], []],
    ])('%s', async (_what, handlers, expected) => {
      const warnings = watchWarnings();
      await ask(handlers(), 3);
      expect(warnings).toEqual(expected);
    });
  });

  describe('L4: two limiters on the way of a request', () => {
    const store = new MemoryStore();
    const one = (options: object = {}) => rateLimit({ ...RULE, limit: 100, store, ...options });
    const TWICE = ['LIMITKEEPER_SCOPE_COUNTED_TWICE'];
    const failures = { count: 'failures', outcome: byStatus };

    test.each<[what: string, first: object, second: object, expected: string[]]>([
      ['of one scope', {}, {}, TWICE],
      ['of one scope, both by outcome', failures, failures, TWICE],
      ['of one scope for one user', { keyFn: () => 'a' }, { keyFn: () => ['a'] }, TWICE],
      ['of two scopes', {}, { scope: 'y' }, []],
      ['in two stores', {}, { store: new MemoryStore() }, []],
      ['of two windows', {}, { windowSec: 3600 }, []],
      ['of two subjects', { keyFn: () => 'a' }, { keyFn: () => 'b' }, []],
      ['of which one takes no part', {}, { when: () => false }, []],
    ])('%s', async (_what, first, second, expected) => {
      const warnings = watchWarnings();
      await ask([one(first), one(second)], 3);
      expect(warnings).toEqual(expected);
    });
  });

  test('message shows in the JSON body, and only where there is one', async () => {
    const { get } = await limited(express, { ...RULE, limit: 0, message: 'Please wait "a minute".' });
    expect((await get()).body).toBe(
      '{"error":"rate_limit_exceeded","message":"Please wait \\"a minute\\"."}',
    );
    const { get: plain } = await limited(express, { ...RULE, limit: 0 });
    expect((await plain()).body).toBe('{"error":"rate_limit_exceeded"}');
  });
});

describe('L4: seconds that are milliseconds', () => {
  const MS = 'LIMITKEEPER_LOOKS_LIKE_MILLISECONDS';

  test.each<[what: string, make: () => unknown]>([
    ['windowSec', () => createLimiter({ ...RULE, windowSec: 60_000 })],
    ['windowSec of the middleware', () => rateLimit({ ...RULE, windowSec: 15 * 60 * 1000 })],
    ['of a function limit', () => rateLimit({ ...RULE, limit: () => 5, windowSec: 60_000 })],
    ['blockSec', () => createLimiter({ ...RULE, blockSec: 300_000 })],
    ['a rung of a ladder', () => createLimiter({ ...RULE, blockSec: [60, 300_000] })],
    ['holdSec', () => createLimiter({ ...RULE, holdSec: 30_000 })],
    ['a preset', () => loginLimits({ password: { windowSec: 900_000 } })],
    [
      'a plan',
      () =>
        createLimiter({ scope: 'x', store: new MemoryStore() }).peek('a', {
          plan: { limit: 5, windowSec: 60_000 },
        }),
    ],
  ])('%s: one warning', async (_what, make) => {
    const warnings = watchWarnings();
    await make();
    await make();
    expect(warnings).toEqual([MS]);
  });

  test('tells of each value once, that whoever mends one hears of the next', () => {
    const emit = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    for (let i = 0; i < 2; i += 1) {
      rateLimit({ ...RULE, windowSec: 60_000, blockSec: [300_000, 600_000], holdSec: 30_000 });
      createLimiter({ rules: [RULE, { ...RULE, scope: 'y', windowSec: 900_000 }] });
    }
    expect(emit.mock.calls.map(([text]) => /^\S+ is \d+/.exec(String(text))?.[0])).toEqual([
      'windowSec is 60000',
      'blockSec is 300000',
      'blockSec is 600000',
      'holdSec is 30000',
      'rules[1].windowSec is 900000',
    ]);
  });

  test('says which option, what it means, and what to write', () => {
    const emit = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    createLimiter({ rules: [RULE, { ...RULE, scope: 'y', windowSec: 60_000 }] });
    expect(emit.mock.calls[0]?.[0]).toMatch(
      /^rules\[1\]\.windowSec is 60000, 17 hours; write 60 for 60000 ms: /,
    );
  });

  test('no false alarm for what people mean in seconds', () => {
    const hours = Array.from({ length: 48 }, (_, i) => (i + 1) * 3600);
    const odd = [125, 250, 375];
    const days = Array.from({ length: 400 }, (_, i) => i + 1).filter(day => !odd.includes(day));
    const others = [0.5, 1, 10, 60, 300, 900, 1000, 5000, 9000, 12_345, 999_999];
    const years = [365, 366, 730, 731, 1461, 3650, 3652].map(day => day * 86_400);
    const meant = [...hours, ...days.map(day => day * 86_400), ...others, ...years];
    for (const known of [86_400, 604_800, 2_592_000, 36_000, 90_000]) expect(meant).toContain(known);
    expect(meant.filter(looksLikeMilliseconds)).toEqual([]);
  });

  test('what people write for milliseconds is found, as far as it is ten seconds and more', () => {
    const seconds = [10, 15, 20, 30, 45];
    const minutes = [1, 2, 3, 5, 10, 15, 20, 30, 45].map(minute => minute * 60);
    const hours = [1, 2, 3, 4, 5, 6, 8, 12, 24, 48].map(hour => hour * 3600);
    const written = [...seconds, ...minutes, ...hours].map(sec => sec * 1000);
    expect(written.filter(sec => !looksLikeMilliseconds(sec))).toEqual([]);
  });
});

describe('L4: an error says what to write', () => {
  const req = { headers: {}, method: 'GET', url: '/' };
  class Request {
    headers = {};
  }

  test.each<[what: string, make: () => unknown, code: string, told: RegExp]>([
    ["consume('a', 3)", () => limiter.consume('a', loose(3)), 'OPTION_TYPE', /\{ cost: 3 \}/],
    ["peek('a', 3)", () => limiter.peek('a', loose(3)), 'OPTION_TYPE', /\{ cost: 3 \}/],
    ["reserve('a', 3)", () => limiter.reserve('a', loose(3)), 'OPTION_TYPE', /\{ cost: 3 \}/],
    ["consume('a', 3n)", () => limiter.consume('a', loose(3n)), 'OPTION_TYPE', /\{ cost: 3 \}/],
    ["charge('a', { cost: 3 })", () => limiter.charge('a', { cost: 3 }), 'COST', /charge\(subject, 3\)/],
    ["charge('a', 3, 4)", () => limiter.charge('a', 3, loose(4)), 'OPTION_TYPE', /Known are: plan/],
    ['consume(req)', () => limiter.consume(loose(new Request())), 'SUBJECT', /clientIp\(req\)/],
    ['block(req)', () => limiter.block(loose(new Request()), 60), 'SUBJECT', /clientIp\(req\)/],
    ['consume(a plain object)', () => limiter.consume(loose(req)), 'UNKNOWN_SCOPE', /"headers"/],
    ['consume(a promise)', () => limiter.consume(loose(Promise.resolve('a'))), 'SUBJECT', /await it/],
    ['consume(a Map)', () => limiter.consume(loose(new Map())), 'SUBJECT', /of a class/],
    [
      'createLimiter({ keyFn })',
      () => createLimiter(loose({ ...RULE, keyFn: () => 'a' })),
      'UNKNOWN_OPTION',
      /rateLimit.*consume\(subject\)/,
    ],
    [
      'createLimiter({ rules: [{ when }] })',
      () => createLimiter(loose({ rules: [{ ...RULE, when: () => true }] })),
      'UNKNOWN_OPTION',
      /rateLimit/,
    ],
    [
      'createLimiter({ rules, outcome })',
      () => createLimiter(loose({ rules: [RULE], outcome: byStatus })),
      'UNKNOWN_OPTION',
      /rateLimit.*charge/,
    ],
    [
      'loginLimits({ limit: 3 })',
      () => loginLimits(loose({ limit: 3 })),
      'UNKNOWN_OPTION',
      /password: \{ limit: … \}/,
    ],
    [
      'apiLimits({ windowSec: 3 })',
      () => apiLimits(loose({ windowSec: 3 })),
      'UNKNOWN_OPTION',
      /ip: \{ windowSec: … \}/,
    ],
    [
      'createLimiter({ skp })',
      () => createLimiter(loose({ ...RULE, skp: 1 })),
      'UNKNOWN_OPTION',
      /"skp" in the options of createLimiter\./,
    ],
    [
      'createLimiter({ scope, rules })',
      () => createLimiter(loose({ ...RULE, rules: [RULE] })),
      'UNKNOWN_OPTION',
      /in the options of createLimiter with rules\. .*one rule, or a list of them.* rules: \[\{ scope: … \}\], or leave rules out/,
    ],
    [
      'rateLimit({ scope, limit, rules: [] })',
      () => rateLimit(loose({ scope: 'x', limit: 5, rules: [] })),
      'UNKNOWN_OPTION',
      /one rule, or a list of them.* rules: \[\{ scope: … \}\], or leave rules out/,
    ],
    [
      'rateLimit({ redis })',
      () => rateLimit(loose({ ...RULE, redis: {} })),
      'UNKNOWN_OPTION',
      /Did you mean store: new RedisStore\(\{ client \}\), of 'limitkeeper\/redis'\?/,
    ],
    [
      'createLimiter({ storeClient })',
      () => createLimiter(loose({ ...RULE, storeClient: {} })),
      'UNKNOWN_OPTION',
      /Did you mean store: new RedisStore\(\{ client \}\)/,
    ],
    [
      'loginLimits({ client })',
      () => loginLimits(loose({ client: {} })),
      'UNKNOWN_OPTION',
      /Did you mean store: new RedisStore\(\{ client \}\)/,
    ],
    [
      'rateLimit({ trustProxy })',
      () => rateLimit(loose({ ...RULE, trustProxy: 1 })),
      'UNKNOWN_OPTION',
      /Did you mean app\.set\('trust proxy', 1\)/,
    ],
    [
      'apiLimits({ trustProxy })',
      () => apiLimits(loose({ trustProxy: 1 })),
      'UNKNOWN_OPTION',
      /Did you mean app\.set\('trust proxy', 1\)/,
    ],
    [
      'rateLimit({ keyPrefix })',
      () => rateLimit(loose({ ...RULE, keyPrefix: 'a' })),
      'UNKNOWN_OPTION',
      /mean scope\?/,
    ],
    [
      'new FakeClock()',
      () => new (FakeClock as unknown as new () => FakeClock)(),
      'OPTION_RANGE',
      /new FakeClock\(/,
    ],
  ])('%s', async (_what, make, code, told) => {
    const error = await mistake(make);
    expect(error).toMatchObject({ code: `ERR_LIMITKEEPER_${code}`, message: expect.stringMatching(told) });
  });

  describe.each<[what: string, uncalled: unknown, told: string]>([
    ['rateLimit', rateLimit, 'Call it: app.use(rateLimit({ … })).'],
    ['loginLimits', loginLimits, 'Call it: loginLimits(), or loginLimits({ … }).'],
    ['apiLimits', apiLimits, 'Call it: apiLimits(), or apiLimits({ … }).'],
    ['createLimiter', createLimiter, 'createLimiter makes no middleware: app.use(rateLimit({ … })) is one.'],
    ['adminRouter', adminRouter, "Call it: app.use('/ops/limits', adminRouter({ limiters, adminKey }))."],
    ['rateRouter', rateRouter, 'Call it: app.use(rateRouter({ … })).'],
  ])('app.use(%s), uncalled', (_what, uncalled, told) => {
    test.each(EXPRESSES)('%s', async (_name, express) => {
      const app = express();
      app.use(loose(uncalled));
      app.use((error: Error, _req: unknown, res: ServerResponse, _next: unknown) => {
        res.end(error.message);
      });
      const { body } = await call(await serve(app), { headers: { 'X-Secret': 'hush' } });
      expect(body).toBe(`limitkeeper: options must be an object of options, got a request. ${told}`);
    });
  });

  test("a request of Express 4 or 5 in a subject's place", async () => {
    for (const [, express] of EXPRESSES) {
      const app = express();
      app.use((request, res) => {
        void mistake(() => limiter.consume(loose(request))).then(({ code, message }) => {
          res.json({ code, message });
        });
      });
      const { body } = await call(await serve(app), { headers: { 'X-Secret': 'hush' } });
      expect(JSON.parse(body)).toEqual({
        code: 'ERR_LIMITKEEPER_SUBJECT',
        message: expect.stringContaining('clientIp(req)') as string,
      });
      expect(body).not.toContain('hush');
    }
  });

  test('what is right goes on as before', async () => {
    expect((await limiter.consume({ x: clientIp({ ip: '203.0.113.7' }) })).allowed).toBe(true);
    expect(
      (await limiter.consume(Object.assign(Object.create(null), { x: 'a' }) as object as never)).allowed,
    ).toBe(true);
    const named = createLimiter({ ...RULE, scope: 'cost', store: new MemoryStore() });
    expect((await named.charge('a', { cost: 3 })).remaining).toBe(2);
  });
});
