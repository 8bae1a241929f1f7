import fc from 'fast-check';
import { createLimiter, isLimitkeeperError, MemoryStore, rateLimit } from '../../src/index.js';
import type { LimiterOptions } from '../../src/index.js';

const good = { scope: 'api', limit: 5, windowSec: 60 };
const create = (options: unknown) => createLimiter(options as LimiterOptions);

const errorOf = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('no error was thrown');
};

type Mistake = [
  what: string,
  options: unknown,
  kind: string,
  code: string,
  option: string | undefined,
  came: string,
];

const TYPE = 'OPTION_TYPE';
const RANGE = 'OPTION_RANGE';

const mistakes: Mistake[] = [
  // Options as a whole.
  ['no options', undefined, 'TypeError', TYPE, 'options', 'undefined'],
  ['null', null, 'TypeError', TYPE, 'options', 'null'],
  ['a text', 'api', 'TypeError', TYPE, 'options', '"api"'],
  ['a list', [good], 'TypeError', TYPE, 'options', 'an array of 1'],
  ['a function', () => good, 'TypeError', TYPE, 'options', 'a function'],
  ['an unknown name', { ...good, max: 5 }, 'TypeError', 'UNKNOWN_OPTION', 'max', '"max"'],
  [
    'a misspelt name',
    { ...good, windowMs: 5 },
    'TypeError',
    'UNKNOWN_OPTION',
    'windowMs',
    'Did you mean windowSec?',
  ],
  [
    'a name of the middleware',
    { ...good, keyFn: () => 'a' },
    'TypeError',
    'UNKNOWN_OPTION',
    'keyFn',
    '"keyFn"',
  ],
  ['a rule beside rules', { ...good, rules: [good] }, 'TypeError', 'UNKNOWN_OPTION', 'scope', '"scope"'],
  [
    'a setting within a rule',
    { rules: [{ ...good, store: 1 }] },
    'TypeError',
    'UNKNOWN_OPTION',
    'rules[0].store',
    'rules[0]',
  ],
  ['rules that are none', { rules: undefined }, 'TypeError', TYPE, 'rules', 'undefined'],
  ['one rule for a list', { rules: good }, 'TypeError', TYPE, 'rules', 'an object'],
  ['no rules', { rules: [] }, 'TypeError', TYPE, 'rules', 'an array of 0'],
  ['a hole in the list', { rules: [good, , good] }, 'TypeError', TYPE, 'rules[1]', 'undefined'], // eslint-disable-line no-sparse-arrays
  ['null for a rule', { rules: [good, null] }, 'TypeError', TYPE, 'rules[1]', 'null'],
  ['the same scope twice', { rules: [good, good] }, 'TypeError', 'DUPLICATE_SCOPE', 'scope', '"api"'],

  // Scope.
  ['no scope', { ...good, scope: undefined }, 'TypeError', TYPE, 'scope', 'undefined'],
  ['a scope that is no text', { ...good, scope: 5 }, 'TypeError', TYPE, 'scope', '5'],
  ['an empty scope', { ...good, scope: '' }, 'RangeError', RANGE, 'scope', '""'],
  ['129 characters', { ...good, scope: 'x'.repeat(129) }, 'RangeError', RANGE, 'scope', '129'],
  ['a line feed', { ...good, scope: 'a\nb' }, 'RangeError', RANGE, 'scope', '"a\\nb"'],
  ['a NUL', { ...good, scope: 'a\0' }, 'RangeError', RANGE, 'scope', '\\u0000'],
  ['a DEL', { ...good, scope: 'a\u007f' }, 'RangeError', RANGE, 'scope', 'control'],
  ['a C1 control', { ...good, scope: 'a\u0085' }, 'RangeError', RANGE, 'scope', 'control'],
  ['half a character', { ...good, scope: 'a\ud800' }, 'RangeError', RANGE, 'scope', '\\ud800'],

  // Limit.
  ['only a window', { scope: 'api', windowSec: 60 }, 'TypeError', TYPE, 'limit', 'undefined'],
  ['null', { ...good, limit: null }, 'TypeError', TYPE, 'limit', 'null'],
  ['a limit as text', { ...good, limit: '5' }, 'TypeError', TYPE, 'limit', '"5"'],
  ['a bigint', { ...good, limit: 5n }, 'TypeError', TYPE, 'limit', '5n'],
  ['a function', { ...good, limit: () => 5 }, 'TypeError', TYPE, 'limit', 'a function'],
  ['a list', { ...good, limit: [] }, 'TypeError', TYPE, 'limit', 'an array of 0'],
  ['a negative limit', { ...good, limit: -1 }, 'RangeError', RANGE, 'limit', '-1'],
  ['a broken limit', { ...good, limit: 0.5 }, 'RangeError', RANGE, 'limit', '0.5'],
  ['NaN', { ...good, limit: NaN }, 'RangeError', RANGE, 'limit', 'NaN'],
  ['no limit at all', { ...good, limit: Infinity }, 'RangeError', RANGE, 'limit', "'unlimited'"],
  [
    'a bucket of 0',
    { ...good, limit: 0, algorithm: 'token-bucket' },
    'RangeError',
    RANGE,
    'limit',
    '≥ 1, got 0',
  ],
  ['a log of 1001', { ...good, limit: 1001, algorithm: 'sliding-log' }, 'RangeError', RANGE, 'limit', '1001'],
  [
    'in a list',
    { rules: [good, { ...good, scope: 'b', limit: -1 }] },
    'RangeError',
    RANGE,
    'rules[1].limit',
    '-1',
  ],

  // Window.
  ['only a limit', { scope: 'api', limit: 5 }, 'TypeError', TYPE, 'windowSec', 'undefined'],
  ['a window as text', { ...good, windowSec: '60' }, 'TypeError', TYPE, 'windowSec', '"60"'],
  ['a bigint', { ...good, windowSec: 60n }, 'TypeError', TYPE, 'windowSec', '60n'],
  ['null', { ...good, windowSec: null }, 'TypeError', TYPE, 'windowSec', 'null'],
  ['no window', { ...good, windowSec: 0 }, 'RangeError', RANGE, 'windowSec', 'got 0'],
  ['minus nothing', { ...good, windowSec: -0 }, 'RangeError', RANGE, 'windowSec', 'got -0'],
  ['a negative window', { ...good, windowSec: -60 }, 'RangeError', RANGE, 'windowSec', '-60'],
  ['half a millisecond', { ...good, windowSec: 0.0005 }, 'RangeError', RANGE, 'windowSec', '0.0005'],
  ['broken milliseconds', { ...good, windowSec: 1.0005 }, 'RangeError', RANGE, 'windowSec', '1.0005'],
  ['nearly nothing', { ...good, windowSec: 1e-10 }, 'RangeError', RANGE, 'windowSec', '1e-10'],
  ['NaN', { ...good, windowSec: NaN }, 'RangeError', RANGE, 'windowSec', 'NaN'],
  ['for ever', { ...good, windowSec: Infinity }, 'RangeError', RANGE, 'windowSec', 'Infinity'],
  ['eleven years', { ...good, windowSec: 11 * 365 * 86_400 }, 'RangeError', RANGE, 'windowSec', '346896000'],

  // The exactness bound: 2^52 = 4,503,599,627,370,496.
  [
    'more than 2^52',
    { ...good, limit: 2 ** 52 / 64 + 1, windowSec: 0.064 },
    'RangeError',
    'EXACTNESS',
    'limit',
    '2^52',
  ],
  [
    '52.2 million a day',
    { ...good, limit: 52_200_000, windowSec: 86_400 },
    'RangeError',
    'EXACTNESS',
    'limit',
    '52124995',
  ],
  [
    '143,000 a year',
    { ...good, limit: 143_000, windowSec: 31_536_000 },
    'RangeError',
    'EXACTNESS',
    'limit',
    'thousands',
  ],
  [
    'a burst too large',
    { ...good, algorithm: 'token-bucket', burst: 2 ** 52 },
    'RangeError',
    'EXACTNESS',
    'burst',
    '60000',
  ],

  // Algorithm, burst, align, mode.
  ['an unknown algorithm', { ...good, algorithm: 'gcra' }, 'TypeError', TYPE, 'algorithm', "'leaky-bucket'"],
  [
    'a name of every object',
    { ...good, algorithm: 'constructor' },
    'TypeError',
    TYPE,
    'algorithm',
    'constructor',
  ],
  ['null', { ...good, algorithm: null }, 'TypeError', TYPE, 'algorithm', 'null'],
  [
    'a burst of 0',
    { ...good, algorithm: 'token-bucket', burst: 0 },
    'RangeError',
    RANGE,
    'burst',
    '≥ 1, got 0',
  ],
  ['a broken burst', { ...good, algorithm: 'leaky-bucket', burst: 1.5 }, 'RangeError', RANGE, 'burst', '1.5'],
  ['a burst as text', { ...good, algorithm: 'token-bucket', burst: '9' }, 'TypeError', TYPE, 'burst', '"9"'],
  ['a burst without a bucket', { ...good, burst: 9 }, 'TypeError', TYPE, 'burst', 'sliding-window'],
  [
    '2 a millisecond without a burst',
    { ...good, limit: 2000, windowSec: 1, algorithm: 'leaky-bucket' },
    'RangeError',
    RANGE,
    'burst',
    'at least 3',
  ],
  [
    '2 a millisecond with a burst of 2',
    { ...good, limit: 2000, windowSec: 1, algorithm: 'token-bucket', burst: 2 },
    'RangeError',
    RANGE,
    'burst',
    'at least 3',
  ],
  [
    'an unknown align',
    { ...good, algorithm: 'fixed-window', align: 'utc' },
    'TypeError',
    TYPE,
    'align',
    '"utc"',
  ],
  ['align elsewhere', { ...good, align: 'epoch' }, 'TypeError', TYPE, 'align', 'sliding-window'],
  ['an unknown mode', { ...good, mode: 'on' }, 'TypeError', TYPE, 'mode', '"on"'],
  ['a mode of false', { ...good, mode: false }, 'TypeError', TYPE, 'mode', 'false'],

  // Block, hold, cost.
  ['a negative block', { ...good, blockSec: -1 }, 'RangeError', RANGE, 'blockSec', '-1'],
  ['a block as text', { ...good, blockSec: '60' }, 'TypeError', TYPE, 'blockSec', '"60"'],
  ['a block of null', { ...good, blockSec: null }, 'TypeError', TYPE, 'blockSec', 'null'],
  ['a block for ever', { ...good, blockSec: Infinity }, 'RangeError', RANGE, 'blockSec', 'Infinity'],
  ['an empty ladder', { ...good, blockSec: [] }, 'RangeError', RANGE, 'blockSec', 'empty'],
  ['a ladder with 0', { ...good, blockSec: [60, 0] }, 'RangeError', RANGE, 'blockSec[1]', 'got 0'],
  ['a ladder with a text', { ...good, blockSec: [60, '300'] }, 'TypeError', TYPE, 'blockSec[1]', '"300"'],
  ['a ladder with a hole', { ...good, blockSec: [60, , 300] }, 'TypeError', TYPE, 'blockSec[1]', 'undefined'], // eslint-disable-line no-sparse-arrays
  ['no hold', { ...good, holdSec: 0 }, 'RangeError', RANGE, 'holdSec', 'got 0'],
  ['a hold as text', { ...good, holdSec: '60' }, 'TypeError', TYPE, 'holdSec', '"60"'],
  ['a negative cost', { ...good, cost: -1 }, 'RangeError', 'COST', 'cost', '-1'],
  ['a cost as text', { ...good, cost: '1' }, 'TypeError', 'COST', 'cost', '"1"'],
  [
    'a cost of NaN in a list',
    { rules: [{ ...good, cost: NaN }] },
    'RangeError',
    'COST',
    'rules[0].cost',
    'NaN',
  ],

  // Settings.
  ['a store that is none', { ...good, store: {} }, 'TypeError', 'STORE_CONTRACT', 'store', 'decide, inspect'],
  [
    'a store without a method',
    { ...good, store: Object.assign(new MemoryStore(), { clear: undefined }) },
    'TypeError',
    'STORE_CONTRACT',
    'store',
    'lacks clear',
  ],
  ['a class in place of a store', { ...good, store: MemoryStore }, 'TypeError', TYPE, 'store', 'a function'],
  ['null for a store', { ...good, store: null }, 'TypeError', TYPE, 'store', 'null'],
  ['an unknown fail mode', { ...good, failMode: 'shut' }, 'TypeError', TYPE, 'failMode', "'closed'"],
  ['no time', { ...good, storeTimeoutMs: 0 }, 'RangeError', RANGE, 'storeTimeoutMs', 'got 0'],
  ['too much time', { ...good, storeTimeoutMs: 60_001 }, 'RangeError', RANGE, 'storeTimeoutMs', '60000'],
  ['time as text', { ...good, storeTimeoutMs: '250' }, 'TypeError', TYPE, 'storeTimeoutMs', '"250"'],
  ['an empty secret', { ...good, hashSecret: '' }, 'TypeError', TYPE, 'hashSecret', 'an empty string'],
  ['a secret that is no text', { ...good, hashSecret: 5 }, 'TypeError', TYPE, 'hashSecret', 'a number'],
  ['a prefix of 31', { ...good, ipv6Prefix: 31 }, 'RangeError', RANGE, 'ipv6Prefix', '31'],
  ['a prefix of 129', { ...good, ipv6Prefix: 129 }, 'RangeError', RANGE, 'ipv6Prefix', '129'],
  ['a prefix as text', { ...good, ipv6Prefix: '64' }, 'TypeError', TYPE, 'ipv6Prefix', '"64"'],
];

test.each(mistakes)('%s: %j is refused as a %s', (_what, options, name, code, option, came) => {
  const error = errorOf(() => create(options));
  expect(error).toMatchObject({ name, code: `ERR_LIMITKEEPER_${code}`, option });
  expect(isLimitkeeperError(error)).toBe(true);
  const { message } = error as Error;
  expect(message).toMatch(/^limitkeeper: /);
  expect(message).toContain(came);
  expect(message).toContain(option!.replace(/^.*\./, ''));
});

describe('the same mistakes in the options of the middleware', () => {
  const viaMiddleware = mistakes.filter(
    ([, options, , , option]) =>
      // What the middleware knows in addition: functions for limits, keyFn, a window that waits for its limit.
      !['keyFn', 'options'].includes(option!) &&
      typeof (options as { limit?: unknown } | undefined)?.limit !== 'function',
  );

  test.each(viaMiddleware)('%s: %j is refused as a %s', (_what, options, name, code, option, came) => {
    const error = errorOf(() => rateLimit(options as never));
    expect(error).toMatchObject({ name, code: `ERR_LIMITKEEPER_${code}`, option });
    expect((error as Error).message).toContain(came);
  });
});

describe('what is right is accepted', () => {
  test.each<[string, object]>([
    ['a limit of 0', { limit: 0 }],
    ['a window of a millisecond', { windowSec: 0.001 }],
    ['0.1 + 0.2 seconds', { windowSec: 0.1 + 0.2 }],
    ['1.1 seconds', { windowSec: 1.1 }],
    ['ten years', { windowSec: 10 * 365.25 * 86_400 }],
    ['ten years less a millisecond', { windowSec: 10 * 365 * 86_400 - 0.001 }],
    ['2^52 exactly', { limit: 2 ** 46, windowSec: 0.064 }],
    ['52 million a day', { limit: 52_000_000, windowSec: 86_400 }],
    ['142,000 a year', { limit: 142_000, windowSec: 31_536_000 }],
    ['a million a second', { limit: 1_000_000, windowSec: 1 }],
    ['1000 a second, evenly', { limit: 1000, windowSec: 1, algorithm: 'leaky-bucket' }],
    ['2 a millisecond with a burst of 3', { limit: 2000, windowSec: 1, algorithm: 'leaky-bucket', burst: 3 }],
    ['a log of 1000', { limit: 1000, algorithm: 'sliding-log' }],
    ['a scope of 128 characters', { scope: 'ü'.repeat(128) }],
    ['a scope of any characters', { scope: 'login "x", \\ é 😀 __proto__' }],
    ['no block', { blockSec: 0 }],
    ['half a second of block', { blockSec: 0.5 }],
    ['a ladder', { blockSec: [1, 60, 86_400] }],
    ['aligned windows', { algorithm: 'fixed-window', align: 'epoch' }],
    [
      'undefined for a default',
      { algorithm: undefined, burst: undefined, align: undefined, mode: undefined },
    ],
    [
      'undefined for other defaults',
      { blockSec: undefined, holdSec: undefined, cost: undefined, store: undefined },
    ],
    ['undefined for a setting', { failMode: undefined, storeTimeoutMs: undefined, hashSecret: undefined }],
    ['a cost of 0', { cost: 0 }],
    ['only a scope, for plans', { limit: undefined, windowSec: undefined }],
  ])('%s', (_what, differs) => {
    expect(() => create({ ...good, ...differs })).not.toThrow();
  });

  test('0.1 + 0.2 seconds are 300 ms', () => {
    expect(create({ ...good, windowSec: 0.1 + 0.2 }).rules[0]).toMatchObject({ windowMs: 300 });
  });
});

describe('no message tells a secret', () => {
  const secret = '20252026';
  test.each<[string, object]>([
    ['the hash secret, in a list', { hashSecret: [secret] }],
    ['the hash secret, as a number', { hashSecret: Number(secret) }],
    ['the hash secret, as a bigint', { hashSecret: BigInt(secret) }],
    ['the hash secret, as an object', { hashSecret: { value: secret } }],
    ['the hash secret, as bytes', { hashSecret: Buffer.from(secret) }],
    ['the address of a server in place of a store', { store: `redis://:${secret}@127.0.0.1` }],
    ['a client in place of a store', { store: { password: secret } }],
    ['the hash secret, beside another mistake', { hashSecret: secret, limit: -1 }],
  ])('%s', (_what, differs) => {
    const error = errorOf(() => create({ ...good, ...differs })) as Error;
    expect(isLimitkeeperError(error)).toBe(true);
    expect(`${error.message} ${JSON.stringify(error)} ${String(error.stack).split('\n')[0]!}`).not.toContain(
      secret,
    );
  });
});

describe('whatever comes, there is a limiter or one of our errors', () => {
  const junk = fc.oneof(
    fc.constantFrom<unknown>(
      undefined,
      null,
      NaN,
      Infinity,
      -Infinity,
      -0,
      0,
      5n,
      '5',
      '',
      [],
      [[]],
      {},
      true,
      () => 5,
      Symbol('5'),
      [Symbol('5')],
      Object.create(null),
      [Object.create(null)],
      new Array(5),
      new Date(0),
      new Map(),
      new Proxy({}, {}),
      Number.MAX_SAFE_INTEGER,
      Number.MIN_VALUE,
      2 ** 53,
      {
        toString() {
          throw new Error('no text');
        },
      },
      {
        valueOf() {
          return 5;
        },
      },
    ),
    fc.double(),
    fc.integer(),
    fc.string(),
    fc.array(fc.double(), { maxLength: 3 }),
    fc.bigInt(),
    fc.object({ maxDepth: 1 }),
  );
  const sound: Record<string, unknown> = {
    ...good,
    blockSec: [60, 300],
    algorithm: 'token-bucket',
    burst: 9,
    mode: 'enforce',
    cost: 1,
    holdSec: 60,
    failMode: 'open',
    storeTimeoutMs: 250,
    hashSecret: 'pepper',
    ipv6Prefix: 64,
    store: new MemoryStore(),
  };
  const names = [...Object.keys(sound), 'align', 'rules'];
  const some = fc.dictionary(fc.constantFrom(...names), junk, { minKeys: 1, maxKeys: 3 });

  async function survives(options: unknown): Promise<void> {
    let limiter;
    try {
      limiter = create(options);
    } catch (error) {
      expect([isLimitkeeperError(error), error]).toEqual([true, error]);
      expect((error as Error).message).toMatch(/^limitkeeper: .{20}/s);
      return;
    }
    // It works: it decides, or misses a plan.
    try {
      const decision = await limiter.consume('alice');
      expect(typeof decision.allowed).toBe('boolean');
      expect(JSON.parse(JSON.stringify(decision))).toEqual(decision);
    } catch (error) {
      expect(error).toMatchObject({ code: 'ERR_LIMITKEEPER_PLAN' });
    }
  }

  test('one or several options of a sound limiter replaced', async () => {
    await fc.assert(
      fc.asyncProperty(some, fc.boolean(), async (differs, rest) => {
        await survives({ ...(rest ? sound : good), ...differs });
      }),
      { numRuns: 1500 },
    );
  });

  test('a list of rules of junk', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(junk, some), { maxLength: 3 }), async rules => {
        await survives({ rules });
        await survives({ rules: rules.map(rule => ({ ...good, ...(rule as object) })) });
      }),
      { numRuns: 300 },
    );
  });

  test('junk in place of the options', async () => {
    await fc.assert(fc.asyncProperty(junk, survives), { numRuns: 200 });
  });

  test('junk in the numbers of a plan, also beside those that were checked before', async () => {
    const limiter = create({ scope: 'api', algorithm: 'token-bucket', store: new MemoryStore() });
    const plan = { limit: 5, windowSec: 60, burst: 9, blockSec: [60, 300] };
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.constantFrom(...Object.keys(plan), 'api', 'limits'), junk, {
          minKeys: 1,
          maxKeys: 2,
        }),
        async differs => {
          await limiter.consume('alice', { plan });
          const {
            limit,
            windowSec,
            burst = 5,
            blockSec = 0,
          } = { ...plan, ...differs } as Record<string, unknown>;
          try {
            await limiter.consume('alice', { plan: { ...plan, ...differs } as never });
          } catch (error) {
            expect([isLimitkeeperError(error), error]).toEqual([true, error]);
            return;
          }
          expect([limit, windowSec, burst, ...(Array.isArray(blockSec) ? blockSec : [blockSec])]).toEqual(
            expect.arrayContaining([expect.any(Number)]),
          );
          expect([limit, windowSec, burst].every(Number.isFinite)).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });
});
