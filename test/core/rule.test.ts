import fc from 'fast-check';
import { algorithms } from '../../src/algorithms/index.js';
import type { AlgorithmName } from '../../src/algorithms/index.js';
import { MAX_SECONDS, milliseconds } from '../../src/core/validate.js';
import { checkPlan, RuleTemplate } from '../../src/core/rule.js';
import type { Plan } from '../../src/core/rule.js';

describe('a rule', () => {
  test('is what its options say, in milliseconds', () => {
    const rule = new RuleTemplate({ scope: 'a', mode: 'shadow', blockSec: [60, 0.5], holdSec: 1.5 }).at({
      limit: 5,
      windowSec: 0.25,
    });
    expect(rule).toStrictEqual({
      scope: 'a',
      algorithm: 'sliding-window',
      limit: 5,
      windowMs: 250,
      capacity: 5,
      align: 'first-hit',
      shadow: true,
      blockMs: [60_000, 500],
      holdMs: 1500,
      plan: { limit: 5, windowSec: 0.25, blockSec: [60, 0.5] },
    });
  });

  test.each<[string, AlgorithmName, number | undefined, number]>([
    ['a window: the limit', 'sliding-window', undefined, 8],
    ['a token bucket: the limit', 'token-bucket', undefined, 8],
    ['a token bucket with a burst: the burst', 'token-bucket', 20, 20],
    ['a leaky bucket: 1', 'leaky-bucket', undefined, 1],
    ['a leaky bucket with a burst: the burst', 'leaky-bucket', 3, 3],
  ])('has the capacity of %s', (_what, algorithm, burst, capacity) => {
    const own = burst === undefined ? {} : { burst };
    expect(new RuleTemplate({ scope: 'a', algorithm, ...own }).at({ limit: 8, windowSec: 60 }).capacity).toBe(
      capacity,
    );
    if (algorithm === 'sliding-window') return;
    expect(new RuleTemplate({ scope: 'a', algorithm }).at({ limit: 8, windowSec: 60, ...own }).capacity).toBe(
      capacity,
    );
  });

  test('cannot be changed', () => {
    const rule = new RuleTemplate({ scope: 'a', blockSec: 60 }).at({ limit: 5, windowSec: 60 });
    expect([rule, rule.blockMs, rule.plan].every(part => Object.isFrozen(part))).toBe(true);
  });

  test.each([
    [undefined, []],
    [0, []],
    [60, [60_000]],
    [[60], [60_000]],
    [
      [60, 300, 3600],
      [60_000, 300_000, 3_600_000],
    ],
  ])('with blockSec %j has the ladder %j', (blockSec, blockMs) => {
    const settings = { scope: 'a', ...(blockSec === undefined ? {} : { blockSec }) };
    expect(new RuleTemplate(settings).at({ limit: 5, windowSec: 60 }).blockMs).toEqual(blockMs);
  });
});

describe('the same numbers give the same rule', () => {
  const template = new RuleTemplate({ scope: 'a', algorithm: 'token-bucket', blockSec: [60, 300] });

  test('and others another one', () => {
    const plans: Plan[] = [
      { limit: 5, windowSec: 60 },
      { limit: 6, windowSec: 60 },
      { limit: 5, windowSec: 61 },
      { limit: 5, windowSec: 60, burst: 6 },
      { limit: 5, windowSec: 60, blockSec: 60 },
      { limit: 5, windowSec: 60, blockSec: [60, 301] },
      { limit: 5, windowSec: 60, blockSec: 0 },
      { limit: 56, windowSec: 0.1 },
      { limit: 5, windowSec: 60.1 },
    ];
    const rules = plans.map(plan => template.at(plan));
    expect(new Set(rules).size).toBe(plans.length);
    expect(plans.map(plan => template.at({ ...plan }))).toEqual(rules);
    plans.forEach((plan, i) => expect(template.at({ ...plan })).toBe(rules[i]));
  });

  test('however many different ones come', () => {
    const first = template.at({ limit: 1, windowSec: 1 });
    for (let limit = 1; limit <= 1000; limit += 1)
      expect(template.at({ limit, windowSec: 1 }).limit).toBe(limit);
    expect(template.at({ limit: 1, windowSec: 1 })).toEqual(first);
  });

  test.each<[string, object]>([
    ['a limit', { limit: '5' }],
    ['a window', { windowSec: '60' }],
    ['a burst', { burst: '9' }],
    ['a block', { blockSec: '60' }],
    ['a ladder', { blockSec: ['60', '300'] }],
    ['a ladder in one text', { blockSec: '60,300' }],
    ['a ladder in a ladder', { blockSec: [[60, 300]] }],
  ])('but %s as text is refused, also beside the number', (_what, differs) => {
    for (const blockSec of [60, [60, 300]]) template.at({ limit: 5, windowSec: 60, burst: 9, blockSec });
    const plan = { limit: 5, windowSec: 60, burst: 9, ...differs } as Plan;
    expect(() => template.at(plan)).toThrow(expect.objectContaining({ code: 'ERR_LIMITKEEPER_OPTION_TYPE' }));
  });
});

test('the plan of a rule makes the same rule again, also through JSON', () => {
  const names = Object.keys(algorithms) as AlgorithmName[];
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      fc.integer({ min: 1, max: 1000 }),
      fc.integer({ min: 1, max: MAX_SECONDS * 1000 }),
      fc.option(fc.integer({ min: 1, max: 10_000 }), { nil: undefined }),
      fc.oneof(fc.constant(0), fc.array(fc.integer({ min: 1, max: 1e11 }), { minLength: 1, maxLength: 4 })),
      (algorithm, limit, windowMs, burst, blockMs) => {
        const template = new RuleTemplate({ scope: 'a', algorithm });
        const isBucket = algorithm.endsWith('bucket');
        const blockSec = blockMs === 0 ? 0 : blockMs.map(ms => ms / 1000);
        const own = burst === undefined || !isBucket ? {} : { burst };
        fc.pre(!isBucket || (burst ?? 1) * windowMs >= limit + windowMs || limit <= windowMs);
        const rule = template.at({ limit, windowSec: windowMs / 1000, blockSec, ...own });
        expect(rule.windowMs).toBe(windowMs);
        expect(rule.blockMs).toEqual(blockMs === 0 ? [] : blockMs);
        const again = new RuleTemplate({ scope: 'a', algorithm, blockSec: 7 }).at(
          JSON.parse(JSON.stringify(rule.plan)) as Plan,
        );
        expect(again).toStrictEqual(rule);
      },
    ),
    { numRuns: 250 },
  );
});

describe('seconds in milliseconds', () => {
  test('whatever whole number of milliseconds was meant is found', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: MAX_SECONDS * 1000 }), ms => {
        expect(milliseconds(ms / 1000, 'x', { zero: false })).toBe(ms);
        // As sums and products of fractions come out; beyond 52 days such an error is more than 1e-6 ms.
        if (ms < 4e9) expect(milliseconds((ms / 1000) * (1 + Number.EPSILON), 'x', { zero: false })).toBe(ms);
      }),
      { numRuns: 400 },
    );
  });

  test('half a millisecond is never quietly rounded, up to a year', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 31_536_000_000 }),
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        (ms, part) => {
          expect(() => milliseconds((ms + part) / 1000, 'x', { zero: true })).toThrow('whole milliseconds');
        },
      ),
      { numRuns: 400 },
    );
  });

  test.each([
    [0, true, 0],
    [0.001, true, 1],
    [0.1 + 0.2, false, 300],
    [MAX_SECONDS, false, 316_224_000_000],
  ])('%d (zero: %p) is %d', (sec, zero, ms) => {
    expect(milliseconds(sec, 'x', { zero })).toBe(ms);
  });
});

describe('the exactness bound: capacity × window in ms ≤ 2^52', () => {
  test('whatever is above it is refused, whatever is not is accepted', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: MAX_SECONDS * 1000 }),
        fc.integer({ min: -3, max: 3 }),
        fc.constantFrom<AlgorithmName>('sliding-window', 'fixed-window', 'token-bucket'),
        (windowMs, off, algorithm) => {
          const limit = Math.floor(2 ** 52 / windowMs) + off;
          fc.pre(limit >= 1);
          const make = () =>
            new RuleTemplate({ scope: 'a', algorithm }).at({ limit, windowSec: windowMs / 1000 });
          // In exact arithmetic, without the doubles that the rule itself uses.
          if (BigInt(limit) * BigInt(windowMs) <= 2n ** 52n) {
            // A bucket above one unit a millisecond also needs L / W + 1, which its default burst L is but for L ≤ W / (W − 1).
            if (algorithm !== 'token-bucket' || windowMs > 1) expect(make().limit).toBe(limit);
          } else {
            expect(make).toThrow(expect.objectContaining({ code: 'ERR_LIMITKEEPER_EXACTNESS' }));
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  test('a bucket above one unit a millisecond needs a burst of at least L / W + 1', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5000 }),
        fc.integer({ min: 1, max: 5000 }),
        fc.integer({ min: 1, max: 10 }),
        (limit, windowMs, burst) => {
          const make = () =>
            new RuleTemplate({ scope: 'a', algorithm: 'token-bucket', burst }).at({
              limit,
              windowSec: windowMs / 1000,
            });
          if (limit <= windowMs || burst >= limit / windowMs + 1) expect(make().capacity).toBe(burst);
          else {
            expect(make).toThrow(`burst must be at least ${String(Math.ceil(limit / windowMs + 1))} `);
          }
        },
      ),
      { numRuns: 400 },
    );
  });
});

describe('a plan', () => {
  test('is handed on as it is', () => {
    const plan = { limit: 5, windowSec: 60, burst: 9, blockSec: [1] };
    expect(checkPlan(plan, 'a')).toBe(plan);
  });

  test.each([undefined, null, 5, 'free', [], () => ({})])('is not %p', plan => {
    expect(() => checkPlan(plan, 'a "b"')).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_LIMITKEEPER_PLAN',
        message: expect.stringContaining('the plan of scope "a \\"b\\""'),
      }),
    );
  });
});
