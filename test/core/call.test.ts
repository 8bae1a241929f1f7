import type { CallOptions, Costs, Subjects } from '../../src/core/call.js';
import { isLimitkeeperError } from '../../src/core/errors.js';
import { hashSubject, subjectHash, subjectOfHash } from '../../src/core/subject.js';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { limiterOn } from '../support/limiters.js';
import { NOON } from '../support/decisions.js';

let clock: FakeClock;
beforeEach(() => {
  clock = new FakeClock(NOON);
});

const window = { windowSec: 60, algorithm: 'fixed-window' } as const;
const two = {
  rules: [
    { scope: 'login.ip', limit: 10, ...window },
    { scope: 'login.email', limit: 5, ...window },
  ],
};
/** Names that a plain object has by itself, or that mean something elsewhere in a call. */
const ODD_SCOPES = [
  'constructor',
  '__proto__',
  'toString',
  'limit',
  'windowSec',
  'hash',
  'cost',
  'plan',
  '0',
];
const odd = { rules: ODD_SCOPES.map(scope => ({ scope, limit: 10, ...window })) };
const byScope = <T>(value: (i: number) => T): Record<string, T> =>
  Object.fromEntries(ODD_SCOPES.map((scope, i) => [scope, value(i)]));

const remaining = (decision: { readings: readonly { remaining: number }[] }) =>
  decision.readings.map(reading => reading.remaining);

describe('subjects', () => {
  test('one for all rules, or one for each scope', async () => {
    const limiter = limiterOn(clock, two);
    await limiter.consume({ 'login.ip': '203.0.113.7', 'login.email': 'alice' });
    await limiter.consume({ 'login.ip': '203.0.113.7', 'login.email': 'bob' });
    expect(remaining(await limiter.peek('alice'))).toEqual([10, 4]);
    expect(remaining(await limiter.peek('203.0.113.7'))).toEqual([8, 5]);
  });

  test('of every form are the same subject as its hash', async () => {
    const limiter = limiterOn(clock, two);
    await limiter.consume(['alice', 7]);
    expect(remaining(await limiter.peek(['alice', '7']))).toEqual([9, 4]);
    expect(remaining(await limiter.peek(subjectOfHash(subjectHash(['alice', 7]))))).toEqual([9, 4]);
    const hashed = hashSubject(['alice', 7n], {});
    expect(remaining(await limiter.peek({ 'login.ip': hashed, 'login.email': 'bob' }))).toEqual([9, 5]);
  });

  test('an operation goes to the scopes that the map names, and to no other', async () => {
    const limiter = limiterOn(clock, two);
    await limiter.charge({ 'login.email': 'alice' }, 2);
    await limiter.block({ 'login.email': 'alice' }, 60);
    const { readings } = await limiter.peek('alice');
    expect(readings.map(({ reason, remaining: left }) => [reason, left])).toEqual([
      ['ok', 10],
      ['blocked', 0],
    ]);
    await limiter.reset({ 'login.email': 'alice' });
    expect(remaining(await limiter.peek('alice'))).toEqual([10, 5]);
  });

  test('a decision needs one for every rule that takes part', async () => {
    const limiter = limiterOn(clock, two);
    await expect(limiter.consume({ 'login.ip': 'alice' })).rejects.toMatchObject({
      name: 'TypeError',
      code: 'ERR_LIMITKEEPER_SUBJECT',
      message: expect.stringContaining('"login.email"'),
    });
    expect(remaining(await limiter.peek('alice'))).toEqual([10, 5]);
    const plan = { 'login.email': 'unlimited' } as const;
    expect(await limiter.consume({ 'login.ip': 'alice' }, { plan })).toMatchObject({
      allowed: true,
      remaining: 9,
    });
  });

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['empty text', ''],
    ['NaN', NaN],
    ['Infinity', Infinity],
    ['true', true],
    ['a symbol', Symbol('alice')],
    ['a function', () => 'alice'],
    ['no parts', []],
    ['an empty part', ['alice', '']],
    ['a part that is none', ['alice', undefined]],
    ['parts within parts', [['alice']]],
    ['an object that names no scope', {}],
    ['a Map', new Map([['login.ip', 'alice']])],
    ['a Date', new Date(0)],
    ['a scope with nobody', { 'login.ip': 'alice', 'login.email': undefined }],
    ['a scope with an object', { 'login.ip': 'alice', 'login.email': {} }],
  ])('%s is nobody: every verb says so, and nothing happens', async (_what, nobody) => {
    const limiter = limiterOn(clock, two);
    const subject = nobody as Subjects;
    const receipt = await limiter.consume('alice');
    const calls = [
      () => limiter.consume(subject),
      () => limiter.peek(subject),
      () => limiter.reserve(subject),
      () => limiter.charge(subject),
      () => limiter.refund(subject, receipt),
      () => limiter.settle(subject, receipt, 1),
      () => limiter.block(subject, 'forever'),
      () => limiter.unblock(subject),
      () => limiter.reset(subject),
      () => limiter.forgive(subject),
      () => limiter.inspect(nobody as string),
    ];
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({ name: 'TypeError', code: 'ERR_LIMITKEEPER_SUBJECT' });
    }
    expect(remaining(await limiter.peek('alice'))).toEqual([9, 4]);
  });

  test('a scope that there is not is refused by its name', async () => {
    const limiter = limiterOn(clock, two);
    for (const call of [
      () => limiter.consume({ 'login.ip': 'a', 'login.email': 'a', 'login.phone': 'a' }),
      () => limiter.block({ 'login.phone': 'a' }, 60),
    ]) {
      await expect(call()).rejects.toMatchObject({
        name: 'RangeError',
        code: 'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
        message: expect.stringMatching(/"login.phone".*login.ip, login.email/),
      });
    }
  });

  test('no message contains a subject', async () => {
    const limiter = limiterOn(clock, two);
    const secret = 'alice@example.com';
    const messages: string[] = [];
    for (const call of [
      () => limiter.consume({ 'login.ip': secret }),
      () => limiter.consume([secret, ''] as never),
      () => limiter.consume([secret, null] as never),
      () => limiter.consume({ 'login.ip': secret, 'login.email': [secret, {}] } as never),
      () => limiter.consume(secret, { cost: NaN }),
      () => limiter.block(secret, -1),
      () => limiter.refund(secret, {} as never),
    ]) {
      await call().catch((error: unknown) => messages.push(String(error)));
    }
    expect(messages).toHaveLength(7);
    expect(messages.join()).not.toContain('alice');
  });
});

describe('costs', () => {
  test('one for all rules, or one for each scope; a missing scope costs 1', async () => {
    const limiter = limiterOn(clock, two);
    expect(remaining(await limiter.consume('alice', { cost: 2 }))).toEqual([8, 3]);
    expect(remaining(await limiter.consume('alice', { cost: { 'login.ip': 3 } }))).toEqual([5, 2]);
    expect(remaining(await limiter.consume('alice', { cost: { 'login.email': 0 } }))).toEqual([4, 2]);
    expect(remaining(await limiter.consume('alice', { cost: {} }))).toEqual([3, 1]);
    expect(remaining(await limiter.charge('bob', { 'login.ip': 4 }))).toEqual([6, 4]);
  });

  test('a missing scope costs what its rule states, where it states one', async () => {
    const limiter = limiterOn(clock, { rules: [{ ...two.rules[0]!, cost: 4 }, two.rules[1]!] });
    expect(remaining(await limiter.consume('alice', { cost: { 'login.email': 2 } }))).toEqual([6, 3]);
  });

  test.each<[string, unknown, string]>([
    ['NaN', NaN, 'NaN'],
    ['Infinity', Infinity, 'Infinity'],
    ['a negative number', -1, '-1'],
    ['a fraction', 1.5, '1.5'],
    ['beyond the whole numbers', 2 ** 53, '9007199254740992'],
    ['text', '5', '"5"'],
    ['a bigint', 5n, '5n'],
    ['null', null, 'null'],
    ['true', true, 'true'],
    ['an array', [5], 'an array of 1'],
    ['an empty array', [], 'an array of 0'],
    ['text in a map', { 'login.ip': '5' }, '"5"'],
    ['null in a map', { 'login.ip': null }, 'null'],
    ['undefined in a map', { 'login.ip': undefined }, 'undefined'],
    ['NaN in a map', { 'login.ip': NaN }, 'NaN'],
  ])('%s is refused, and nothing is taken', async (_what, given, came) => {
    const limiter = limiterOn(clock, two);
    const cost = given as Costs;
    const { decision: reserved } = await limiter.reserve('bob');
    for (const call of [
      () => limiter.consume('alice', { cost }),
      () => limiter.peek('alice', { cost }),
      () => limiter.reserve('alice', { cost }),
      () => limiter.charge('alice', cost),
      () => limiter.settle('bob', reserved, cost),
    ]) {
      await expect(call()).rejects.toMatchObject({
        code: 'ERR_LIMITKEEPER_COST',
        name: expect.stringMatching(/^(Type|Range)Error$/),
        message: expect.stringMatching(/cost.*must be a whole number ≥ 0.*got/),
      });
      await expect(call()).rejects.toThrow(came);
    }
    expect(await limiter.inspect('alice')).toEqual([]);
  });

  test('a scope that there is not is refused', async () => {
    const limiter = limiterOn(clock, two);
    await expect(limiter.consume('alice', { cost: { 'login.phone': 1 } })).rejects.toMatchObject({
      code: 'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
    });
    await expect(limiter.charge('alice', { toString: 1 })).rejects.toMatchObject({
      code: 'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
    });
    expect(await limiter.inspect('alice')).toEqual([]);
  });
});

describe('scopes may be called anything', () => {
  test('in maps of subjects, costs and plans', async () => {
    const limiter = limiterOn(clock, odd);
    const decision = await limiter.consume(
      byScope(i => `s${String(i)}`),
      { cost: byScope(i => i) },
    );
    expect(remaining(decision)).toEqual(ODD_SCOPES.map((_, i) => 10 - i));
    for (const i of ODD_SCOPES.keys()) {
      const { readings } = await limiter.peek(`s${String(i)}`);
      expect(readings.map(reading => reading.remaining)).toEqual(
        ODD_SCOPES.map((_, j) => (j === i ? 10 - i : 10)),
      );
    }
    const plan = byScope(i => ({ limit: 100 + i, windowSec: 3600 }));
    const planned = await limiter.consume('alice', { plan });
    expect(planned.readings.map(({ limit }) => limit)).toEqual(ODD_SCOPES.map((_, i) => 100 + i));
    const refunded = await limiter.refund(
      'alice',
      planned,
      byScope(() => 1),
    );
    expect(remaining(refunded)).toEqual(ODD_SCOPES.map((_, i) => 100 + i));
  });

  test('and what an object has by itself is no entry of a map', async () => {
    const limiter = limiterOn(clock, odd);
    expect(remaining(await limiter.consume('alice', { cost: { limit: 3 } }))).toEqual(
      ODD_SCOPES.map(scope => (scope === 'limit' ? 7 : 9)),
    );
    const own = await limiter.consume('alice', { plan: { limit: { limit: 77, windowSec: 1 } } });
    expect(own.readings.map(({ limit }) => limit)).toEqual(
      ODD_SCOPES.map(scope => (scope === 'limit' ? 77 : 10)),
    );
  });
});

describe('plans', () => {
  const free = { limit: 3, windowSec: 60 };
  const pro = { limit: 100, windowSec: 60, blockSec: [10, 20] };

  test('free, pro and unlimited, per call; a change of numbers keeps the counter of the same window', async () => {
    const limiter = limiterOn(clock, { scope: 'api', algorithm: 'fixed-window' });
    expect(await limiter.consume('alice', { plan: free, cost: 3 })).toMatchObject({ limit: 3, remaining: 0 });
    expect(await limiter.consume('alice', { plan: free })).toMatchObject({ allowed: false, limit: 3 });
    expect(await limiter.consume('alice', { plan: pro })).toMatchObject({ limit: 100, remaining: 96 });
    expect(await limiter.consume('alice', { plan: 'unlimited', cost: 1000 })).toEqual({
      allowed: true,
      reason: 'ok',
      scope: null,
      limit: null,
      remaining: null,
      retryAfterMs: 0,
      moreAfterMs: null,
      resetAfterMs: null,
      at: expect.any(Number),
      readings: [],
    });
    expect(await limiter.charge('alice', 96, { plan: pro })).toMatchObject({
      reason: 'blocked',
      retryAfterMs: 10_000,
    });
  });

  test('by scope; a scope that the map leaves out has its own numbers', async () => {
    const limiter = limiterOn(clock, {
      rules: [
        { scope: 'a', algorithm: 'fixed-window' },
        { scope: 'b', limit: 10, ...window },
        { scope: 'c', limit: 7, ...window },
      ],
    });
    const decision = await limiter.consume('alice', { plan: { a: pro, c: 'unlimited' } });
    expect(decision.readings.map(({ scope, limit }) => [scope, limit])).toEqual([
      ['a', 100],
      ['b', 10],
    ]);
    expect(decision.receipt?.rules.map(({ scope }) => scope)).toEqual(['a', 'b']);
  });

  test('one plan for all scopes, also where a scope is called "limit"', async () => {
    const limiter = limiterOn(clock, { rules: [{ scope: 'limit' }, { scope: 'windowSec' }] });
    expect((await limiter.consume('alice', { plan: free })).readings.map(({ limit }) => limit)).toEqual([
      3, 3,
    ]);
    const plan = { limit: pro, windowSec: 'unlimited' } as const;
    expect((await limiter.consume('alice', { plan })).readings.map(({ limit }) => limit)).toEqual([100]);
  });

  test('a rule that lives by plans needs one for what counts, and says so', async () => {
    const limiter = limiterOn(clock, { rules: [{ scope: 'a', limit: 1, windowSec: 60 }, { scope: 'b' }] });
    for (const call of [
      () => limiter.consume('alice'),
      () => limiter.peek('alice'),
      () => limiter.reserve('alice'),
      () => limiter.charge('alice'),
      () => limiter.consume('alice', { plan: { a: free } }),
    ]) {
      await expect(call()).rejects.toMatchObject({
        name: 'TypeError',
        code: 'ERR_LIMITKEEPER_PLAN',
        option: 'plan',
        message: expect.stringMatching(/"b".*plan: \{ limit, windowSec \}/),
      });
    }
    expect(await limiter.inspect('alice')).toEqual([]);
  });

  test('but none for what does not depend on numbers', async () => {
    const limiter = limiterOn(clock, { scope: 'api', algorithm: 'token-bucket', burst: 2 ** 50 });
    expect(await limiter.block('alice', 60)).toMatchObject({ reason: 'blocked', retryAfterMs: 60_000 });
    expect(await limiter.forgive('alice')).toMatchObject({ reason: 'blocked' });
    expect(await limiter.unblock('alice')).toMatchObject({ allowed: true });
    await limiter.block('alice', 60);
    await limiter.reset('alice');
    expect(await limiter.inspect('alice')).toEqual([]);
  });

  test('forgive and reset forget the counters of every plan', async () => {
    const limiter = limiterOn(clock, { scope: 'api', algorithm: 'fixed-window' });
    for (const forget of ['forgive', 'reset'] as const) {
      await limiter.consume('alice', { plan: free });
      await limiter.consume('alice', { plan: { ...free, windowSec: 3600 } });
      await limiter[forget]('alice');
      expect(await limiter.inspect('alice')).toEqual([]);
    }
  });

  test.each<[string, unknown, string]>([
    ['null', null, 'null'],
    ['true', true, 'true'],
    ['a number', 5, '5'],
    ['another word', 'free', '"free"'],
    ['an array', [free], 'an array of 1'],
    ['a limit as text', { limit: '5', windowSec: 60 }, '"5"'],
    ['no limit', { windowSec: 60 }, 'limit must be a whole number ≥ 0, got undefined'],
    ['no window', { limit: 5 }, 'windowSec'],
    ['a limit of null', { limit: null, windowSec: 60 }, 'limit must be a whole number ≥ 0, got null'],
    ['an infinite limit', { limit: Infinity, windowSec: 60 }, "'unlimited'"],
    ['a limit of unlimited', { limit: 'unlimited', windowSec: 60 }, '"unlimited"'],
    ['a window of 0', { limit: 5, windowSec: 0 }, 'windowSec'],
    ['a burst without a bucket', { ...free, burst: 5 }, 'burst'],
    ['a negative block', { ...free, blockSec: -1 }, 'blockSec'],
    ['an unknown name', { ...free, window: 60 }, 'window'],
    ['a map with a scope that there is not', { login: free }, '"login"'],
    ['a map with null', { api: null }, 'null'],
    ['a map with undefined', { api: undefined }, 'undefined'],
    ['a map with a number', { api: 5 }, '5'],
    ['a map with an array', { api: [free] }, 'an array of 1'],
    [
      'a map with a mistake in it',
      { api: { limit: -1, windowSec: 60 } },
      'limit must be a whole number ≥ 0, got -1',
    ],
    ['an object without primitive form', Object.create(null), ''],
    ['a limit without primitive form', { limit: Object.create(null), windowSec: 60 }, 'limit'],
    ['a block of texts', { ...free, blockSec: ['60'] }, 'blockSec'],
  ])('a plan that is %s is refused with the name of what is wrong', async (_what, given, says) => {
    const limiter = limiterOn(clock, { scope: 'api' });
    // Kept ready, so that a look-alike could be taken for it.
    await limiter.consume('bob', { plan: free });
    await limiter.consume('bob', { plan: { ...free, limit: 5 } });
    await limiter.consume('bob', { plan: { ...free, blockSec: 60 } });
    const plan = given as NonNullable<CallOptions['plan']>;
    for (const call of [
      () => limiter.consume('alice', { plan }),
      () => limiter.charge('alice', 1, { plan }),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_LIMITKEEPER_/) });
      await expect(call()).rejects.toThrow(says);
    }
    expect(await limiter.inspect('alice')).toEqual([]);
  });
});

describe('options of a call that would do nothing are refused', () => {
  test.each<[string, unknown]>([
    ['a number in place of the options', 3],
    ['null', null],
    ['an array', [3]],
    ['a misspelt name', { costs: 3 }],
    ['a name of another place', { limit: 3 }],
  ])('%s', async (_what, given) => {
    const limiter = limiterOn(clock, two);
    const options = given as CallOptions;
    for (const call of [
      () => limiter.consume('alice', options),
      () => limiter.peek('alice', options),
      () => limiter.reserve('alice', options),
      () => limiter.charge('alice', 1, options),
    ]) {
      const error: unknown = await call().then(
        () => 'no error',
        (thrown: unknown) => thrown,
      );
      expect(isLimitkeeperError(error) ? error.code : error).toMatch(/OPTION_TYPE|UNKNOWN_OPTION/);
    }
    expect(await limiter.inspect('alice')).toEqual([]);
  });

  test('charge has its number elsewhere', async () => {
    const limiter = limiterOn(clock, two);
    await expect(limiter.charge('alice', 1, { cost: 3 } as never)).rejects.toMatchObject({
      code: 'ERR_LIMITKEEPER_UNKNOWN_OPTION',
    });
  });
});
