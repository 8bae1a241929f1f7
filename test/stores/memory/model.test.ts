import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import type { Cell, Counter } from '../../../src/core/cell.js';
import { Check } from '../../../src/core/check.js';
import { decideCells } from '../../../src/core/decide-cells.js';
import { MemoryStore } from '../../../src/stores/memory/memory-store.js';
import { liveCell } from '../../../src/stores/live-cell.js';
import { FakeClock } from '../../../src/testing/index.js';
import { NOON } from '../../support/decisions.js';
import { ALL_OPERATIONS, ruleFrom, runs, smallRule } from '../../support/sequences.js';
import { subject } from '../../support/subjects.js';
import type { Operation } from '../../../src/core/operation.js';
import { applyBatch, resultOf } from '../../../src/testing/batch.js';

const SUBJECTS = ['a', 'b', 'c', 'd', 'e', 'f'].map(name => subject(name, 'everyone'));
const DAY = 86_400_000;

const call = fc.record({
  wait: fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 0, max: 300 }) },
    { weight: 2, arbitrary: fc.integer({ min: -2000, max: 100_000 }) },
    { weight: 1, arbitrary: fc.constantFrom(-DAY, DAY, -1) },
  ),
  who: fc.nat(SUBJECTS.length - 1),
  which: fc.nat(3),
  type: fc.constantFrom(...ALL_OPERATIONS),
  units: fc.nat(5),
  long: fc.boolean(),
});

function operationOf(
  { type, units, long }: { type: Operation['type']; units: number; long: boolean },
  now: number,
): Operation {
  switch (type) {
    case 'consume':
    case 'peek':
    case 'reserve':
      return { type, cost: units };
    case 'charge':
      return { type, units };
    case 'block':
      return { type, ms: long ? null : 1 + units * 100 };
    case 'settle':
      return { type, at: Math.max(0, now - 10 * units), held: units, actual: units };
    case 'refund':
      return { type, at: Math.max(0, now - 10 * units), units };
    default:
      return { type };
  }
}

const nameOf = ({ algorithm, windowMs }: Counter): string => `${algorithm} ${String(windowMs)}`;

/** All that the store shows, by subject and scope. */
function shown(memory: MemoryStore): Map<string, Cell> {
  const cells = new Map<string, Cell>();
  for (const { hash } of SUBJECTS) {
    for (const { scope, cell } of memory.inspect(hash)) cells.set(`${hash} ${scope}`, cell);
  }
  return cells;
}

function alive(cell: Cell | undefined, now: number): Cell | undefined {
  return cell && withoutDeadHolds(liveCell({ scope: '', cell }, now)?.cell, now);
}

/** Dead holds mean nothing, and stay until the next change of holds. */
function withoutDeadHolds(cell: Cell | undefined, now: number): Cell | undefined {
  if (cell === undefined) return undefined;
  const living = (holds: readonly number[]) => holds.filter((_, i) => holds[i - (i % 2)]! > now);
  return { ...cell, counters: cell.counters.map(counter => ({ ...counter, holds: living(counter.holds) })) };
}

test('against a plain map: each call decides on what the store shows, writes that cell, and takes others only for room', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.tuple(smallRule(), smallRule(), smallRule(), smallRule()),
      fc.array(call, { maxLength: 150, size: 'max' }),
      (maxKeys, parts, sequence) => {
        const clock = new FakeClock(NOON);
        const memory = new MemoryStore({ clock, maxKeys });
        // The first two share a scope, and where their windows differ have a counter each.
        const rules = parts.map((part, i) => ruleFrom({ ...part, scope: `s${String(Math.max(1, i))}` }));
        for (const made of sequence) {
          clock.set(Math.max(0, clock.now() + made.wait));
          const now = clock.now();
          const before = shown(memory);
          const rule = rules[made.which]!;
          const asked = { rule, subject: SUBJECTS[made.who]!, operation: operationOf(made, now) };
          const touched = `${asked.subject.hash} ${rule.scope}`;
          const check = new Check(rule, asked.subject, asked.operation);
          const [expected] = decideCells([check], [before.get(touched)], now);
          assert.deepEqual(applyBatch(memory, [asked]), resultOf([check], now));

          before.set(touched, expected!);
          const after = shown(memory);
          let missing = 0;
          let blocksMissing = 0;
          for (const [name, cell] of before) {
            const had = alive(cell, now);
            const has = withoutDeadHolds(after.get(name), now);
            const counters = new Map((has?.counters ?? []).map(counter => [nameOf(counter), counter]));
            for (const counter of had?.counters ?? []) {
              if (counters.has(nameOf(counter))) assert.deepEqual(counters.get(nameOf(counter)), counter);
              else missing += 1;
              counters.delete(nameOf(counter));
            }
            assert.equal(counters.size, 0);
            if (has?.block === undefined && had?.block !== undefined) blocksMissing += 1;
            else assert.deepEqual(has?.block, had?.block);
            after.delete(name);
          }
          assert.equal(after.size, 0);
          // One came, so one may have gone.
          assert.ok(missing <= 1 && blocksMissing <= 1);
          const all = [...shown(memory).values()];
          const counters = all.reduce((sum, cell) => sum + cell.counters.length, 0);
          const blocks = all.filter(cell => cell.block !== undefined).length;
          assert.ok(counters <= maxKeys && blocks <= maxKeys);
          if (missing > 0) assert.ok(counters === maxKeys, `${String(counters)} of ${String(maxKeys)}`);
          if (blocksMissing > 0) assert.ok(blocks === maxKeys);
        }
      },
    ),
    runs(150),
  );
});
