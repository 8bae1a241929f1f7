import { byStatus, isLimitkeeperError, MemoryStore, rateLimit } from 'limitkeeper';
import type { RateLimitOptions } from 'limitkeeper';

const OK = { scope: 'api.ip', limit: 5, windowSec: 60 };
const plan = () => ({ limit: 5, windowSec: 60 });
const keyFn = () => 'alice';
const outcome = byStatus;

interface Mistake {
  readonly options: unknown;
  readonly code: string;
  readonly option: string;
  readonly came: string;
}

function mistake(options: unknown, code: string, option: string, came: string): Mistake {
  return { options, code: `ERR_LIMITKEEPER_${code}`, option, came };
}

const MISTAKES: readonly Mistake[] = [
  mistake(undefined, 'OPTION_TYPE', 'options', 'undefined'),
  mistake(null, 'OPTION_TYPE', 'options', 'null'),
  mistake([OK], 'OPTION_TYPE', 'options', 'an array of 1'),

  mistake({ limit: 5, windowSec: 60 }, 'OPTION_TYPE', 'scope', 'undefined'),
  mistake({ ...OK, scope: 5 }, 'OPTION_TYPE', 'scope', '5'),
  mistake({ ...OK, scope: '' }, 'OPTION_RANGE', 'scope', '""'),
  mistake({ ...OK, scope: 'x'.repeat(129) }, 'OPTION_RANGE', 'scope', '129'),
  mistake({ ...OK, scope: 'a\nb' }, 'OPTION_RANGE', 'scope', '"a\\nb"'),
  mistake({ ...OK, scope: 'a\u0085b' }, 'OPTION_RANGE', 'scope', 'control characters'),

  mistake({ scope: 'x', windowSec: 60 }, 'OPTION_TYPE', 'limit', 'undefined'),
  mistake({ ...OK, limit: '5' }, 'OPTION_TYPE', 'limit', 'the string "5"'),
  mistake({ ...OK, limit: -1 }, 'OPTION_RANGE', 'limit', '-1'),
  mistake({ ...OK, limit: 1.5 }, 'OPTION_RANGE', 'limit', '1.5'),
  mistake({ ...OK, limit: NaN }, 'OPTION_RANGE', 'limit', "mode: 'off'"),
  mistake({ ...OK, limit: Infinity }, 'OPTION_RANGE', 'limit', "'unlimited'"),
  mistake({ ...OK, limit: 5n }, 'OPTION_TYPE', 'limit', '5n'),

  mistake({ scope: 'x', limit: 5 }, 'OPTION_TYPE', 'windowSec', 'undefined'),
  mistake({ ...OK, windowSec: '60' }, 'OPTION_TYPE', 'windowSec', 'the string "60"'),
  mistake({ ...OK, windowSec: 0 }, 'OPTION_RANGE', 'windowSec', '0'),
  mistake({ ...OK, windowSec: -1 }, 'OPTION_RANGE', 'windowSec', '-1'),
  mistake({ ...OK, windowSec: 0.0005 }, 'OPTION_RANGE', 'windowSec', '0.0005'),
  mistake({ ...OK, windowSec: NaN }, 'OPTION_RANGE', 'windowSec', 'NaN'),
  mistake({ ...OK, windowSec: 11 * 366 * 86_400 }, 'OPTION_RANGE', 'windowSec', '10 years'),
  mistake({ ...OK, limit: () => 5, windowSec: 0 }, 'OPTION_RANGE', 'windowSec', '0'),
  mistake({ ...OK, limit: 2 ** 50, windowSec: 3600 }, 'EXACTNESS', 'limit', '2^52'),

  mistake({ ...OK, blockSec: -1 }, 'OPTION_RANGE', 'blockSec', '-1'),
  mistake({ ...OK, blockSec: '60' }, 'OPTION_TYPE', 'blockSec', 'the string "60"'),
  mistake({ ...OK, blockSec: [] }, 'OPTION_RANGE', 'blockSec', 'an empty list'),
  mistake({ ...OK, blockSec: [60, 0] }, 'OPTION_RANGE', 'blockSec[1]', '0'),
  mistake({ ...OK, algorithm: 'gcra' }, 'OPTION_TYPE', 'algorithm', 'the string "gcra"'),
  mistake({ ...OK, algorithm: 'token-bucket', burst: 0 }, 'OPTION_RANGE', 'burst', '0'),
  mistake({ ...OK, burst: 5 }, 'OPTION_TYPE', 'burst', 'sliding-window'),
  mistake({ ...OK, algorithm: 'leaky-bucket', limit: 0 }, 'OPTION_RANGE', 'limit', '0'),
  mistake({ ...OK, algorithm: 'sliding-log', limit: 1001 }, 'OPTION_RANGE', 'limit', '1001'),
  mistake({ ...OK, align: 'epoch' }, 'OPTION_TYPE', 'align', 'sliding-window'),
  mistake({ ...OK, algorithm: 'fixed-window', align: 'day' }, 'OPTION_TYPE', 'align', 'the string "day"'),
  mistake({ ...OK, mode: 'dry-run' }, 'OPTION_TYPE', 'mode', 'the string "dry-run"'),
  mistake({ ...OK, holdSec: 0 }, 'OPTION_RANGE', 'holdSec', '0'),

  mistake({ ...OK, maximum: 5 }, 'UNKNOWN_OPTION', 'maximum', 'Known are'),
  mistake({ ...OK, max: 5 }, 'UNKNOWN_OPTION', 'max', 'Did you mean limit?'),
  mistake({ ...OK, keyGenerator: () => 'a' }, 'UNKNOWN_OPTION', 'keyGenerator', 'Did you mean keyFn?'),
  mistake(
    { ...OK, skipSuccessfulRequests: true },
    'UNKNOWN_OPTION',
    'skipSuccessfulRequests',
    "Did you mean count: 'failures' with an outcome?",
  ),
  mistake({ ...OK, constructor: 1 }, 'UNKNOWN_OPTION', 'constructor', 'Known are'),
  mistake({ ...OK, windowMs: 60_000 }, 'UNKNOWN_OPTION', 'windowMs', 'Did you mean windowSec?'),
  mistake({ ...OK, headers: { draft: 8 } }, 'UNKNOWN_OPTION', 'draft', 'headers'),
  mistake({ rules: [{ ...OK, store: {} }] }, 'UNKNOWN_OPTION', 'rules[0].store', 'rules[0]'),
  mistake({ rules: [OK], limit: 5 }, 'UNKNOWN_OPTION', 'limit', 'rules'),

  mistake({ rules: [] }, 'OPTION_TYPE', 'rules', 'an array of 0'),
  mistake({ rules: OK }, 'OPTION_TYPE', 'rules', 'an object'),
  mistake({ rules: [OK, 'second'] }, 'OPTION_TYPE', 'rules[1]', 'the string "second"'),
  mistake({ rules: [OK, { ...OK, scope: 'b', limit: -1 }] }, 'OPTION_RANGE', 'rules[1].limit', '-1'),
  mistake({ rules: [OK, { ...OK, windowSec: 5 }] }, 'DUPLICATE_SCOPE', 'scope', '"api.ip"'),

  mistake({ ...OK, store: {} }, 'STORE_CONTRACT', 'store', 'lacks decide'),
  mistake({ ...OK, store: 'redis' }, 'OPTION_TYPE', 'store', 'a string'),
  mistake(
    { ...OK, store: { ...Object.create(null), decide: () => 1 } },
    'STORE_CONTRACT',
    'store',
    'inspect',
  ),

  mistake({ ...OK, count: 'failures' }, 'OUTCOME_REQUIRED', 'outcome', 'byStatus'),
  mistake({ ...OK, count: 'successes' }, 'OUTCOME_REQUIRED', 'outcome', '"api.ip"'),
  mistake({ ...OK, resetOnSuccess: true, keyFn }, 'OUTCOME_REQUIRED', 'outcome', '"api.ip"'),
  mistake({ ...OK, resetOnSuccess: true, outcome }, 'KEY_REQUIRED', 'resetOnSuccess', 'keyFn'),
  mistake({ ...OK, count: 'errors', outcome }, 'OPTION_TYPE', 'count', 'the string "errors"'),
  mistake({ ...OK, strict: false }, 'OPTION_TYPE', 'strict', 'counts all'),
  mistake({ ...OK, count: 'failures', strict: 'no', outcome }, 'OPTION_TYPE', 'strict', 'the string "no"'),
  mistake({ ...OK, reserve: 1 }, 'OPTION_TYPE', 'reserve', '1'),
  mistake({ ...OK, resetOnSuccess: 'yes', outcome, keyFn }, 'OPTION_TYPE', 'resetOnSuccess', 'yes'),

  mistake({ ...OK, plan }, 'OPTION_TYPE', 'plan', 'leave those two out'),
  mistake({ scope: 'x', plan: 'free' }, 'OPTION_TYPE', 'plan', 'the string "free"'),
  mistake({ ...OK, keyFn: 'ip' }, 'OPTION_TYPE', 'keyFn', 'the string "ip"'),
  mistake({ ...OK, when: true }, 'OPTION_TYPE', 'when', 'true'),
  mistake({ ...OK, cost: -1 }, 'COST', 'cost', '-1'),
  mistake({ ...OK, cost: 1.5 }, 'COST', 'cost', '1.5'),
  mistake({ ...OK, cost: '2' }, 'COST', 'cost', 'the string "2"'),
  mistake({ ...OK, skip: true }, 'OPTION_TYPE', 'skip', 'true'),
  mistake({ ...OK, outcome: 'byStatus' }, 'OPTION_TYPE', 'outcome', 'the string "byStatus"'),
  mistake({ ...OK, onLimited: '/login' }, 'OPTION_TYPE', 'onLimited', 'the string "/login"'),
  mistake({ ...OK, countPreflight: 0 }, 'OPTION_TYPE', 'countPreflight', '0'),
  mistake({ ...OK, message: { error: 'x' } }, 'OPTION_TYPE', 'message', 'an object'),
  mistake({ ...OK, headers: true }, 'OPTION_TYPE', 'headers', 'true'),
  mistake({ ...OK, headers: { legacy: 1 } }, 'OPTION_TYPE', 'headers.legacy', '1'),
  mistake({ ...OK, failMode: 'opened' }, 'OPTION_TYPE', 'failMode', 'the string "opened"'),
  mistake({ ...OK, storeTimeoutMs: 0 }, 'OPTION_RANGE', 'storeTimeoutMs', '0'),
  mistake({ ...OK, storeTimeoutMs: 60_001 }, 'OPTION_RANGE', 'storeTimeoutMs', '60001'),
  mistake({ ...OK, ipv6Prefix: 31 }, 'OPTION_RANGE', 'ipv6Prefix', '31'),
  mistake({ ...OK, ipv6Prefix: 129 }, 'OPTION_RANGE', 'ipv6Prefix', '129'),
  mistake({ ...OK, hashSecret: '' }, 'OPTION_TYPE', 'hashSecret', 'empty'),
  mistake({ ...OK, hashSecret: 5 }, 'OPTION_TYPE', 'hashSecret', 'number'),
];

test.each(MISTAKES)(
  '$option: $options is refused at construction ($code)',
  ({ options, code, option, came }) => {
    let error: unknown;
    try {
      rateLimit(options as RateLimitOptions);
    } catch (thrown) {
      error = thrown;
    }
    expect(isLimitkeeperError(error)).toBe(true);
    expect(error).toMatchObject({ code, option });
    expect(error instanceof TypeError || error instanceof RangeError).toBe(true);
    const { message } = error as Error;
    // Which option, what was expected, what came.
    expect(message).toMatch(
      /^limitkeeper: .*(must|needs|applies|takes|is required|names two|unknown|at most)/,
    );
    expect(message).toContain(option.replace(/^rules\[\d\]\./, ''));
    expect(message).toContain(came);
  },
);

test.each([['hunter2'], 46_656])('a secret of the wrong type (%p) is not in the message', hashSecret => {
  expect(() => rateLimit({ ...OK, hashSecret: hashSecret as never })).toThrow(
    expect.objectContaining({ message: expect.not.stringMatching(/hunter2|46656/) }),
  );
});

test.each<readonly [string, object]>([
  ['0.3 s made of 0.1 + 0.2', { windowSec: 0.1 + 0.2 }],
  ['a limit of 0', { limit: 0 }],
  ['ten years', { windowSec: 10 * 365 * 86_400 }],
  [
    'every option as undefined',
    { keyFn: undefined, when: undefined, cost: undefined, headers: undefined, skip: undefined },
  ],
  ['a scope of 128 characters with blanks and umlauts', { scope: 'ä b'.padEnd(128, '.') }],
  ['a ladder', { blockSec: [60, 300, 3600] }],
  ['a block of 0', { blockSec: 0 }],
  ['no headers', { headers: false }],
])('%s is no mistake', (_what, options) => {
  expect(() => rateLimit({ ...OK, store: new MemoryStore(), ...options })).not.toThrow();
});
