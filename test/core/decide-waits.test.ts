import fc from 'fast-check';
import { usedIn } from '../../src/algorithms/index.js';
import { decideCells } from '../../src/core/decide-cells.js';
import { Check } from '../../src/core/check.js';
import type { Cell } from '../../src/core/cell.js';
import type { Operation } from '../../src/core/operation.js';
import { LOOK } from '../../src/core/operation.js';
import { Decider } from '../support/decider.js';
import { ALL_OPERATIONS, extremeRule, play, ruleFrom, runs, smallRule, steps } from '../support/sequences.js';
import type { RuleParts, Step } from '../support/sequences.js';
import { subject } from '../support/subjects.js';

const anyRule = fc.oneof({ weight: 3, arbitrary: smallRule() }, { weight: 1, arbitrary: extremeRule });
/** What asks without a block that would stand for ever and hide the rest. */
const busy = ['consume', 'consume', 'consume', 'reserve', 'settle', 'charge', 'refund'] as const;

/** Plays the steps, and shows the decider after each. */
function each(
  parts: RuleParts,
  sequence: readonly Step[],
  look: (
    decider: Decider,
    now: number,
    asked: { operation: Operation; reading: ReturnType<Decider['ask']> },
  ) => void,
): void {
  const rule = ruleFrom(parts);
  const decider = new Decider(rule);
  play(rule, sequence, (operation, now) => {
    const reading = decider.ask(operation, now);
    look(decider, now, { operation, reading });
    return reading;
  });
}

const costOf = (operation: Operation): number => ('cost' in operation ? operation.cost : 0);

describe('a wait is exact', () => {
  test('after retryAfterMs the same cost passes, and 1 ms earlier it does not', () => {
    fc.assert(
      fc.property(anyRule, steps(busy), (parts, sequence) => {
        each(parts, sequence, (decider, now, { operation, reading: { allowed, retryAfterMs } }) => {
          if (allowed || retryAfterMs === null) return;
          const cost = costOf(operation);
          expect(retryAfterMs).toBeGreaterThan(0);
          expect(decider.passes(cost, now + retryAfterMs)).toBe(true);
          expect(decider.passes(cost, now + retryAfterMs - 1)).toBe(false);
        });
      }),
      runs(300),
    );
  });

  test('retryAfterMs is null exactly where the cost never passes', () => {
    fc.assert(
      fc.property(anyRule, steps(ALL_OPERATIONS), (parts, sequence) => {
        const { capacity } = ruleFrom(parts);
        each(parts, sequence, ({ cell }, _, { operation, reading: { retryAfterMs } }) => {
          const forEver = cell?.block?.until === null;
          expect(retryAfterMs === null).toBe(forEver || costOf(operation) > capacity);
        });
      }),
      runs(150),
    );
  });

  test('after moreAfterMs one unit more than remaining passes, and 1 ms earlier it does not', () => {
    fc.assert(
      fc.property(anyRule, steps(busy), (parts, sequence) => {
        each(parts, sequence, (decider, now, { reading: { remaining, limit, moreAfterMs } }) => {
          if (moreAfterMs === null) return;
          expect(moreAfterMs === 0).toBe(remaining === limit);
          if (moreAfterMs === 0) return;
          expect(decider.passes(remaining + 1, now + moreAfterMs)).toBe(true);
          expect(decider.passes(remaining + 1, now + moreAfterMs - 1)).toBe(false);
        });
      }),
      runs(300),
    );
  });

  test('remaining passes now, and one more does not', () => {
    fc.assert(
      fc.property(anyRule, steps(busy), (parts, sequence) => {
        each(parts, sequence, (decider, now, { reading: { remaining, limit } }) => {
          if (remaining > 0) expect(decider.passes(remaining, now)).toBe(true);
          if (remaining < limit) expect(decider.passes(remaining + 1, now)).toBe(false);
        });
      }),
      runs(150),
    );
  });

  test('after resetAfterMs nothing is used or held and no block stands, and 1 ms earlier something is', () => {
    fc.assert(
      fc.property(anyRule, steps(busy), (parts, sequence) => {
        const rule = ruleFrom(parts);
        const isClear = (cell: Cell | undefined, at: number) =>
          (cell?.block === undefined || cell.block.until! <= at) &&
          (cell?.counters ?? []).every(
            ({ state, holds }) =>
              usedIn(rule.algorithm, state, rule, at) === 0 &&
              holds.every((lapse, i) => i % 2 === 1 || lapse <= at),
          );
        each(parts, sequence, ({ cell }, now, { reading: { resetAfterMs } }) => {
          expect(isClear(cell, now + resetAfterMs!)).toBe(true);
          if (resetAfterMs! > 0) expect(isClear(cell, now + resetAfterMs! - 1)).toBe(false);
        });
      }),
      runs(300),
    );
  });
});

describe('nothing changes', () => {
  test('by a peek', () => {
    fc.assert(
      fc.property(anyRule, steps(ALL_OPERATIONS), fc.nat(20), (parts, sequence, cost) => {
        each(parts, sequence, (decider, now) => {
          const before = decider.cell;
          const json = JSON.stringify(before);
          decider.ask({ type: 'peek', cost }, now);
          expect(decider.cell).toBe(before);
          expect(JSON.stringify(before)).toBe(json);
        });
      }),
      runs(100),
    );
  });

  test('by a refusal, but for the block that it starts', () => {
    fc.assert(
      fc.property(
        anyRule,
        steps(ALL_OPERATIONS),
        fc.integer({ min: 1, max: 20 }),
        (parts, sequence, cost) => {
          each(parts, sequence, (decider, now) => {
            for (const type of ['consume', 'reserve'] as const) {
              const before = decider.cell;
              const reading = decider.foresee({ type, cost }, now);
              if (reading.allowed) continue;
              const after = new Decider(ruleFrom(parts), before);
              after.ask({ type, cost }, now);
              const mayBlock = reading.reason === 'limit' && ruleFrom(parts).blockMs.length > 0;
              if (!mayBlock) expect(after.cell).toBe(before);
              const alive = (before?.counters ?? []).filter(counter => counter.until > now);
              if (mayBlock) expect(after.cell?.counters).toEqual(alive);
            }
          });
        },
      ),
      runs(100),
    );
  });

  test('in any rule of a batch of which one refuses, but for the blocks that start', () => {
    const twoOrMore = fc.array(smallRule(), { minLength: 2, maxLength: 4 });
    fc.assert(
      fc.property(twoOrMore, fc.array(fc.tuple(fc.nat(3), fc.nat(400)), { maxLength: 30 }), (all, calls) => {
        const rules = all.map((parts, i) => ruleFrom({ ...parts, scope: `s${String(i)}` }));
        let cells: readonly (Cell | undefined)[] = rules.map(() => undefined);
        let now = 1_764_585_780_000;
        for (const [cost, wait] of calls) {
          now += wait;
          const checks = rules.map(rule => new Check(rule, subject('alice'), { type: 'consume', cost }));
          const after = decideCells(checks, cells, now);
          const alone = checks.map((asked, i) => {
            const check = asked.with(asked.operation);
            const [cell] = decideCells([check], [cells[i]], now);
            return { check, cell };
          });
          const isAllowed = alone.every(({ check }) => check.allowed);
          expect(checks.map(({ reason }) => reason)).toEqual(alone.map(({ check }) => check.reason));
          after.forEach((cell, i) => {
            // Allowed: each as if it were alone. Refused: only who refuses for its limit changes, and then as if alone.
            const mayChange = isAllowed || alone[i]!.check.reason === 'limit';
            expect(cell).toEqual(mayChange ? alone[i]!.cell : cells[i]);
          });
          cells = after;
        }
      }),
      runs(150),
    );
  });

  test('by forgetting what is over: a store may drop it sooner, later or never', () => {
    fc.assert(
      fc.property(anyRule, steps(ALL_OPERATIONS), (parts, sequence) => {
        const forgetful = new Decider(ruleFrom(parts));
        each(parts, sequence, (_, now, { operation, reading }) => {
          const { cell } = forgetful;
          if (cell !== undefined) {
            const counters = cell.counters.filter(counter => counter.until > now);
            forgetful.cell =
              counters.length === 0 && cell.block === undefined ? undefined : { ...cell, counters };
          }
          expect(forgetful.ask(operation, now)).toEqual(reading);
        });
      }),
      runs(200),
    );
  });

  test('by keeping cells as JSON', () => {
    fc.assert(
      fc.property(anyRule, steps(ALL_OPERATIONS), (parts, sequence) => {
        const stored = new Decider(ruleFrom(parts));
        each(parts, sequence, (_, now, { operation, reading }) => {
          if (stored.cell !== undefined) stored.cell = JSON.parse(JSON.stringify(stored.cell)) as Cell;
          expect(stored.ask(operation, now)).toEqual(reading);
        });
      }),
      runs(100),
    );
  });
});

test('a hold lapses between holdMs and twice holdMs after it was made, however busy the cell', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(1, 10, 500, 1000, 60_000),
      fc.nat(1_000_000),
      fc.array(fc.nat(200), { maxLength: 20 }),
      (holdMs, offset, others) => {
        const rule = ruleFrom({ scope: 's', limit: 1000, windowSec: 3600, holdSec: holdMs / 1000 });
        const decider = new Decider(rule);
        const made = 1_764_585_780_000 + offset;
        decider.ask({ type: 'reserve', cost: 10 }, made);
        let now = made;
        for (const wait of others) {
          now += Math.floor((wait * holdMs) / 1000);
          if (now >= made + holdMs) break;
          decider.ask({ type: 'reserve', cost: 1 }, now);
          decider.ask({ type: 'settle', at: now, held: 1, actual: 0 }, now);
        }
        const heldAt = (at: number) => 1000 - decider.foresee(LOOK, at).remaining;
        expect(heldAt(made + holdMs)).toBe(10);
        expect(heldAt(made + 2 * holdMs)).toBe(0);
        // Two sums at most, however many reservations.
        expect(decider.cell!.counters[0]!.holds.length).toBeLessThanOrEqual(4);
      },
    ),
    runs(200),
  );
});
