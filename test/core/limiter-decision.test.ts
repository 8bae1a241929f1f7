import type { Reading } from '../../src/core/decision.js';
import type { LimiterRule } from '../../src/core/limiter-options.js';
import type { Limiter } from '../../src/core/limiter.js';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { decided, NOON, reading, refusal } from '../support/decisions.js';
import { limiterOn } from '../support/limiters.js';

describe('which reading binds', () => {
  const ok = (scope: string, remaining: number) => reading({ scope, remaining });
  const no = (scope: string, retryAfterMs: number | null) => refusal({ scope, retryAfterMs });
  const shadowed = <T extends Reading>(of: T) => ({ ...of, shadow: true });

  test.each<[string, ReturnType<typeof reading>[], string | null]>([
    ['the only one', [ok('a', 9)], 'a'],
    ['allowed: the fewest remaining', [ok('a', 9), ok('b', 3), ok('c', 4)], 'b'],
    ['allowed: ties go to the first', [ok('a', 9), ok('b', 3), ok('c', 3)], 'b'],
    ['allowed: nothing remaining is the fewest', [ok('a', 1), ok('b', 0)], 'b'],
    ['one refuses: it binds, whatever the others have left', [ok('a', 0), no('b', 1), ok('c', 0)], 'b'],
    ['refused: the longest wait', [no('a', 10), no('b', 500), no('c', 499)], 'b'],
    ['refused: ties go to the first', [no('a', 10), no('b', 500), no('c', 500)], 'b'],
    ['refused: never is the longest wait of all', [no('a', 1e12), no('b', null), no('c', 1e12)], 'b'],
    ['refused: two that never pass, the first', [no('a', 5), no('b', null), no('c', null)], 'b'],
    [
      'a shadow rule never binds, refusing or not',
      [shadowed(no('a', null)), ok('b', 5), shadowed(ok('c', 0))],
      'b',
    ],
    [
      'a shadow rule never binds among refusals',
      [shadowed(no('a', null)), no('b', 5), shadowed(no('c', 9))],
      'b',
    ],
    ['only shadow rules: none', [shadowed(no('a', null)), shadowed(ok('b', 5))], null],
    ['no rule: none', [], null],
  ])('%s', (_what, readings, scope) => {
    const decision = decided(readings);
    expect(decision.scope).toBe(scope);
    expect(decision.at).toBe(NOON);
    expect(decision.readings).toEqual(readings);
    const binding = readings.find(one => one.scope === scope);
    const { allowed, reason, limit, remaining, retryAfterMs, moreAfterMs, resetAfterMs } = decision;
    expect({ allowed, reason, limit, remaining, retryAfterMs, moreAfterMs, resetAfterMs }).toEqual(
      binding === undefined
        ? {
            allowed: true,
            reason: 'ok',
            limit: null,
            remaining: null,
            retryAfterMs: 0,
            moreAfterMs: null,
            resetAfterMs: null,
          }
        : {
            allowed: binding.allowed,
            reason: binding.reason,
            limit: binding.limit,
            remaining: binding.remaining,
            retryAfterMs: binding.retryAfterMs,
            moreAfterMs: binding.moreAfterMs,
            resetAfterMs: binding.resetAfterMs,
          },
    );
  });
});

describe('rules decided together', () => {
  let clock: FakeClock;
  let limiter: Limiter;
  const per = (
    scope: string,
    limit: number,
    windowSec: number,
    rest: Partial<LimiterRule> = {},
  ): LimiterRule => ({
    scope,
    limit,
    windowSec,
    algorithm: 'fixed-window',
    ...rest,
  });
  const make = (...rules: LimiterRule[]) => {
    clock = new FakeClock(NOON);
    limiter = limiterOn(clock, { rules });
  };
  const left = async () =>
    (await limiter.peek('alice', { cost: 0 })).readings.map(({ remaining }) => remaining);

  test('all or none: when one refuses, no rule is charged', async () => {
    make(per('minute', 5, 60), per('day', 7, 86_400));
    await limiter.consume('alice', { cost: 5 });
    clock.advance(60_000);
    // 2 are left of the day.
    const refused = await limiter.consume('alice', { cost: 3 });
    expect(refused).toMatchObject({ allowed: false, scope: 'day', retryAfterMs: 86_400_000 - 60_000 });
    expect(refused.readings.map(({ allowed, reason, remaining }) => [allowed, reason, remaining])).toEqual([
      [true, 'ok', 5],
      [false, 'limit', 2],
    ]);
    expect(await left()).toEqual([5, 2]);
    expect(await limiter.consume('alice', { cost: 2 })).toMatchObject({
      allowed: true,
      scope: 'day',
      remaining: 0,
    });
    expect(await left()).toEqual([3, 0]);
  });

  test('each rule whose own verdict is limit starts its own block', async () => {
    make(
      per('a', 1, 60, { blockSec: 100 }),
      per('b', 9, 60, { blockSec: 500 }),
      per('c', 1, 60, { blockSec: 200 }),
    );
    await limiter.consume('alice');
    const refused = await limiter.consume('alice');
    expect(refused).toMatchObject({ scope: 'c', reason: 'limit', retryAfterMs: 200_000 });
    const { readings } = await limiter.peek('alice');
    expect(readings.map(({ reason, retryAfterMs }) => [reason, retryAfterMs])).toEqual([
      ['blocked', 100_000],
      ['ok', 0],
      ['blocked', 200_000],
    ]);
  });

  test('a cost that can never pass starts no block, and the answer is never', async () => {
    make(per('a', 5, 60, { blockSec: 100 }), per('b', 1, 60, { blockSec: 100 }));
    await limiter.consume('alice', { cost: { a: 1, b: 1 } });
    expect(await limiter.consume('alice', { cost: { a: 6, b: 0 } })).toMatchObject({
      allowed: false,
      scope: 'a',
      reason: 'cost',
      retryAfterMs: null,
    });
    expect(await left()).toEqual([4, 0]);
  });

  test('waiting as told passes, one millisecond less does not', async () => {
    make(per('minute', 2, 60), per('ten', 3, 600), per('shadow', 1, 86_400, { mode: 'shadow' }));
    for (let i = 0; i < 12; i += 1) {
      const decision = await limiter.consume('alice');
      if (decision.allowed) continue;
      clock.advance(decision.retryAfterMs! - 1);
      expect((await limiter.peek('alice')).allowed).toBe(false);
      clock.advance(1);
      expect((await limiter.peek('alice')).allowed).toBe(true);
    }
  });

  test('a shadow rule counts, blocks and reports, but never refuses, and is not charged where it would have', async () => {
    make(per('old', 9, 60), per('new', 2, 60, { mode: 'shadow', blockSec: 30 }));
    const seen = [];
    for (let i = 0; i < 4; i += 1) seen.push(await limiter.consume('alice'));
    expect(seen.map(({ allowed, scope, remaining }) => [allowed, scope, remaining])).toEqual([
      [true, 'old', 8],
      [true, 'old', 7],
      [true, 'old', 6],
      [true, 'old', 5],
    ]);
    expect(seen.map(({ readings }) => readings[1])).toMatchObject([
      { shadow: true, allowed: true, remaining: 1 },
      { shadow: true, allowed: true, remaining: 0 },
      { shadow: true, allowed: false, reason: 'limit', retryAfterMs: 60_000 },
      { shadow: true, allowed: false, reason: 'blocked', retryAfterMs: 60_000 },
    ]);
    clock.advance(30_000);
    expect((await limiter.peek('alice')).readings[1]).toMatchObject({ reason: 'limit' });
  });

  test('when an enforced rule refuses, a shadow rule is not charged either', async () => {
    make(per('old', 1, 60), per('new', 9, 60, { mode: 'shadow' }));
    await limiter.consume('alice');
    await limiter.consume('alice');
    expect(await left()).toEqual([0, 8]);
  });

  test('a rule that is off is absent', async () => {
    make(per('off', 0, 60, { mode: 'off' }), per('on', 2, 60));
    const decision = await limiter.consume('alice');
    expect(decision.readings.map(({ scope }) => scope)).toEqual(['on']);
    expect(decision.receipt?.rules.map(({ scope }) => scope)).toEqual(['on']);
    expect((await limiter.inspect('alice')).map(({ scope }) => scope)).toEqual(['on']);
    await limiter.block({ off: 'alice' }, 'forever');
    expect(await limiter.consume('alice')).toMatchObject({ allowed: true });
  });

  test('no enforced rule: allowed, and nothing to tell; what shadow rules counted is in the readings', async () => {
    make(per('a', 0, 60, { mode: 'off' }), per('b', 1, 60, { mode: 'shadow' }));
    const nothing = {
      allowed: true,
      reason: 'ok',
      scope: null,
      limit: null,
      remaining: null,
      retryAfterMs: 0,
      moreAfterMs: null,
      resetAfterMs: null,
    };
    expect(await limiter.consume('alice')).toMatchObject({
      ...nothing,
      readings: [{ scope: 'b', remaining: 0 }],
    });
    const refused = await limiter.consume('alice');
    expect(refused).toMatchObject({ ...nothing, readings: [{ scope: 'b', allowed: false }] });
    expect(refused).not.toHaveProperty('receipt');
  });

  test('the window of a reading: that of the rule, or the time to refill the bucket', async () => {
    make(
      per('window', 5, 60),
      { scope: 'token', limit: 5, windowSec: 60, algorithm: 'token-bucket' },
      { scope: 'burst', limit: 5, windowSec: 60, algorithm: 'token-bucket', burst: 12 },
      // One unit of 7 leaks in 142.86 ms.
      { scope: 'leaky', limit: 7, windowSec: 1, algorithm: 'leaky-bucket' },
    );
    const { readings } = await limiter.consume('alice');
    expect(readings.map(({ windowMs, limit }) => [windowMs, limit])).toEqual([
      [60_000, 5],
      [60_000, 5],
      [144_000, 12],
      [143, 1],
    ]);
  });
});
