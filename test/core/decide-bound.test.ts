import fc from 'fast-check';
import type { Rule } from '../../src/core/rule.js';
import { BOUNDS, fullestSpan } from '../support/bounds.js';
import { Decider } from '../support/decider.js';
import { ALGORITHMS, play, ruleFrom, runs, smallRule, steps } from '../support/sequences.js';
import type { Played, RuleParts, Step } from '../support/sequences.js';

/** Of what was counted, when: consumed units where they were not given back, and reservations when settled. */
function counted(played: readonly Played[]): Map<number, number> {
  const units = new Map<number, number>();
  const add = (at: number, n: number) => units.set(at, (units.get(at) ?? 0) + n);
  for (const { now, operation, reading } of played) {
    if (operation.type === 'consume' && reading.allowed) add(now, operation.cost);
    if (operation.type === 'refund') add(operation.at, -operation.units);
    if (operation.type === 'settle') add(now, operation.actual);
  }
  return units;
}

/** Operations of which the bound speaks: no charge, and settles of no more than what is still held. */
const types = [
  'consume',
  'consume',
  'consume',
  'consume',
  'consume',
  'refund',
  'reserve',
  'settle',
  'peek',
] as const;

function playBounded(parts: RuleParts, sequence: readonly Step[]): { rule: Rule; played: Played[] } {
  const rule = ruleFrom({ ...parts, blockSec: 0 });
  const decider = new Decider(rule);
  const played = play(rule, sequence, (operation, now) => {
    if (operation.type !== 'settle') return decider.ask(operation, now);
    const lapsed = (Math.floor(operation.at / rule.holdMs) + 2) * rule.holdMs <= now;
    Object.assign(operation, { actual: lapsed ? 0 : Math.min(operation.actual, operation.held) });
    return decider.ask(operation, now);
  });
  return { rule, played };
}

describe.each(ALGORITHMS)(
  '%s never admits more in any span of one window than its row of the table says',
  algorithm => {
    const bound = BOUNDS[algorithm];

    test('whatever is asked, and when', () => {
      fc.assert(
        fc.property(smallRule([algorithm]), steps(types, 80), (parts, sequence) => {
          const { rule, played } = playBounded(parts, sequence);
          expect(fullestSpan(counted(played), rule.windowMs)).toBeLessThanOrEqual(bound(rule));
        }),
        runs(250),
      );
    });
  },
);

describe('the bound is reached, so none smaller could be promised', () => {
  /** Takes what there is at each of the times. */
  function fullest(parts: Omit<RuleParts, 'scope'>, times: readonly number[]): number {
    const rule = ruleFrom({ scope: 's', ...parts });
    const decider = new Decider(rule);
    const units = new Map<number, number>();
    for (const at of times) {
      const { remaining } = decider.foresee({ type: 'peek', cost: 0 }, at);
      if (remaining > 0 && decider.ask({ type: 'consume', cost: remaining }, at).allowed)
        units.set(at, remaining);
    }
    return fullestSpan(units, rule.windowMs);
  }

  const everyMs = Array.from({ length: 3001 }, (_, i) => i);

  test('fixed-window: 2 L, one before a window ends and one after', () => {
    const parts = { algorithm: 'fixed-window', align: 'epoch', limit: 5, windowSec: 1 } as const;
    expect(fullest(parts, [999, 1000])).toBe(10);
  });

  test('sliding-log: L', () => {
    expect(fullest({ algorithm: 'sliding-log', limit: 5, windowSec: 1 }, everyMs)).toBe(5);
  });

  test('token-bucket: burst + L, the burst and what comes back within the window', () => {
    // In the last of 1,000 ms the 5th unit is not back yet: 3 + 4 within [0, 1000).
    expect(fullest({ algorithm: 'token-bucket', limit: 5, burst: 3, windowSec: 1 }, everyMs)).toBe(7);
  });

  test('sliding-window: 2 L − 2 for units at the very start of the window before', () => {
    const rule = ruleFrom({ scope: 's', algorithm: 'sliding-window', limit: 100, windowSec: 1000 });
    const decider = new Decider(rule);
    const units = new Map<number, number>();
    // One unit opens the window; the others come in its last millisecond, and count by where the window began.
    const take = (at: number, cost: number) => {
      expect(decider.ask({ type: 'consume', cost }, at).allowed).toBe(true);
      units.set(at, cost);
    };
    take(0, 1);
    take(999_999, 99);
    for (let at = 1_000_000; at < 1_999_999; at += 1000) {
      const { remaining } = decider.foresee({ type: 'peek', cost: 0 }, at);
      if (remaining > 0) take(at, remaining);
    }
    expect(fullestSpan(units, rule.windowMs)).toBe(198);
  });
});
