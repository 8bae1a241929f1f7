import fc from 'fast-check';
import { BOUNDS, fullestSpan } from '../support/bounds.js';
import { Decider } from '../support/decider.js';
import { ALGORITHMS, ALL_OPERATIONS, play, ruleFrom, runs, smallRule, steps } from '../support/sequences.js';

const waits = ['retryAfterMs', 'moreAfterMs', 'resetAfterMs'] as const;
const back = fc.oneof(
  fc.constantFrom(1, 2, 1000),
  fc.integer({ min: 1, max: 200_000 }),
  fc.constant(86_400_000),
);

describe('a clock that steps back', () => {
  test('admits nothing that it did not admit before the step', () => {
    fc.assert(
      fc.property(smallRule(), steps(ALL_OPERATIONS), back, (parts, sequence, step) => {
        const rule = ruleFrom(parts);
        const decider = new Decider(rule);
        play(rule, sequence, (operation, now) => {
          const reading = decider.ask(operation, now);
          const before = decider.foresee({ type: 'peek', cost: 0 }, now);
          const after = decider.foresee({ type: 'peek', cost: 0 }, now - step);
          expect(after.remaining).toBeLessThanOrEqual(before.remaining);
          return reading;
        });
      }),
      runs(200),
    );
  });

  test('lengthens no wait by more than the step', () => {
    fc.assert(
      fc.property(smallRule(), steps(ALL_OPERATIONS), back, fc.nat(13), (parts, sequence, step, cost) => {
        const rule = ruleFrom(parts);
        const decider = new Decider(rule);
        play(rule, sequence, (operation, now) => {
          const reading = decider.ask(operation, now);
          const before = decider.foresee({ type: 'peek', cost }, now);
          const after = decider.foresee({ type: 'peek', cost }, now - step);
          for (const wait of waits) {
            // Of a unit more than remain: where fewer remain after the step, it is the wait for another number.
            if (wait === 'moreAfterMs' && after.remaining !== before.remaining) continue;
            if (before[wait] === null) expect(after[wait]).toBeNull();
            else expect(after[wait]).toBeLessThanOrEqual(before[wait] + step);
          }
          return reading;
        });
      }),
      runs(200),
    );
  });

  // Judged by real time, which never steps: the clock runs with it, but is set back now and then.
  test.each(ALGORITHMS)('%s: no span of real time holds more than the table says', algorithm => {
    const moves = fc.array(
      fc.record({
        wait: fc.oneof(fc.constantFrom(0, 0, 1), fc.double({ min: 0, max: 1.5, noNaN: true })),
        told: fc.boolean(),
        stepBack: fc.oneof(
          { weight: 5, arbitrary: fc.constant(0) },
          { weight: 1, arbitrary: fc.double({ min: 0, max: 3, noNaN: true }) },
        ),
        cost: fc.integer({ min: 1, max: 4 }),
      }),
      { maxLength: 80, size: 'max' },
    );
    fc.assert(
      fc.property(smallRule([algorithm]), moves, (parts, sequence) => {
        const rule = ruleFrom({ ...parts, blockSec: 0 });
        const decider = new Decider(rule);
        const units = new Map<number, number>();
        let real = 1_764_585_780_000;
        let behind = 0;
        let told = 0;
        for (const move of sequence) {
          real += move.told ? told : Math.floor(move.wait * rule.windowMs);
          behind += Math.floor(move.stepBack * rule.windowMs);
          const { allowed, retryAfterMs } = decider.ask({ type: 'consume', cost: move.cost }, real - behind);
          told = retryAfterMs ?? 0;
          if (allowed) units.set(real, (units.get(real) ?? 0) + move.cost);
        }
        expect(fullestSpan(units, rule.windowMs)).toBeLessThanOrEqual(BOUNDS[algorithm](rule));
      }),
      runs(250),
    );
  });
});
