import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import type { Operation } from '../../../src/core/operation.js';
import { LOOK } from '../../../src/core/operation.js';
import { isStanding } from '../../../src/core/block.js';
import { MemoryStore } from '../../../src/stores/memory/memory-store.js';
import { FakeClock } from '../../../src/testing/index.js';
import { NOON } from '../../support/decisions.js';
import { DecideStore } from '../../support/decide-store.js';
import { ruleFrom, runs, smallRule } from '../../support/sequences.js';
import { subject } from '../../support/subjects.js';
import { applyBatch } from '../../../src/testing/batch.js';

const SUBJECTS = ['a', 'b', 'c', 'd', 'e'].map(name => subject(name, 'everyone'));
const YEAR = 365 * 86_400_000;

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ type: fc.constant('consume' as const), cost: fc.integer({ min: 0, max: 5 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('reserve' as const), cost: fc.integer({ min: 0, max: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('charge' as const), units: fc.integer({ min: 0, max: 30 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('block' as const),
      ms: fc.option(fc.integer({ min: 1, max: 10_000_000 }), { nil: null, freq: 8 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('unblock', 'reset', 'forgive') }) },
);

const wait = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 200 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 200_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(63, 64, 4095, 4096, 262_144, 86_400_000, 3 * YEAR) },
);

const call = fc.record({
  wait,
  who: fc.nat(SUBJECTS.length - 1),
  which: fc.nat(2),
  operation,
  reset: fc.boolean().chain(first => (first ? fc.boolean() : fc.constant(false))),
});

const calls = (waits: fc.Arbitrary<number>) =>
  fc.array(
    fc.tuple(call, waits).map(([made, ms]) => ({ ...made, wait: ms })),
    { maxLength: 120, size: 'max' },
  );

const threeRules = fc.tuple(smallRule(), smallRule(), smallRule());

describe('MemoryStore answers as decide over cells that are never forgotten', () => {
  test('whatever is swept between, and shows the same cells and blocks', () => {
    fc.assert(
      fc.property(threeRules, calls(wait), (parts, sequence) => {
        const clock = new FakeClock(NOON);
        const memory = new MemoryStore({ clock });
        const all = new DecideStore(clock);
        const rules = parts.map((part, i) => ruleFrom({ ...part, scope: `s${String(i)}` }));
        for (const { wait: ms, who, which, operation: asked, reset } of sequence) {
          clock.advance(ms);
          const item = { rule: rules[which]!, subject: SUBJECTS[who]!, operation: asked };
          assert.deepEqual(applyBatch(memory, [item]), applyBatch(all, [item]));
          if (reset) {
            const { hash } = SUBJECTS[who]!;
            memory.reset(hash, `s${String(which)}`);
            all.cells.delete(`${hash} s${String(which)}`);
          }
        }
        const now = clock.now();
        const standing = [...all.cells]
          .filter(([, cell]) => isStanding(cell.block, now))
          .map(([name]) => name);
        const pages = [memory.blocked(), memory.blocked({ part: subject('everyone').hash })];
        for (const { blocks } of pages) {
          expect(blocks.map(({ subjectHash, scope }) => `${subjectHash} ${scope}`).sort()).toEqual(
            standing.sort(),
          );
        }
      }),
      runs(120),
    );
  });

  test('with a clock that steps back and forth', () => {
    const stepping = fc.oneof(wait, fc.integer({ min: -200_000, max: 0 }), fc.constantFrom(-1, -86_400_000));
    fc.assert(
      fc.property(threeRules, calls(stepping), (parts, sequence) => {
        const clock = new FakeClock(NOON);
        const memory = new MemoryStore({ clock });
        const rules = parts.map((part, i) => ruleFrom({ ...part, scope: `s${String(i)}` }));
        for (const { wait: ms, who, which, operation: asked } of sequence) {
          clock.advance(ms);
          const item = { rule: rules[which]!, subject: SUBJECTS[who]!, operation: asked };
          const [before] = memory.inspect(item.subject.hash).filter(({ scope }) => scope === item.rule.scope);
          const [reading] = applyBatch(memory, [item]).readings;
          const alone = new DecideStore(clock);
          if (before !== undefined) alone.cells.set(`${item.subject.hash} ${item.rule.scope}`, before.cell);
          // What it showed before is what it decided on: nothing alive was swept.
          assert.deepEqual(reading, applyBatch(alone, [item]).readings[0]);
        }
        expectSwept(memory, clock, rules.length);
      }),
      runs(60),
    );
  });

  test('and in the end nothing is left but blocks for ever', () => {
    fc.assert(
      fc.property(threeRules, calls(wait), (parts, sequence) => {
        const clock = new FakeClock(NOON);
        const memory = new MemoryStore({ clock });
        const rules = parts.map((part, i) => ruleFrom({ ...part, scope: `s${String(i)}` }));
        for (const { wait: ms, who, which, operation: asked } of sequence) {
          clock.advance(ms);
          applyBatch(memory, [{ rule: rules[which]!, subject: SUBJECTS[who]!, operation: asked }]);
        }
        expectSwept(memory, clock, rules.length);
      }),
      runs(60),
    );
  });

  /** Long after, a look a cell is enough to have swept all that can end. */
  function expectSwept(memory: MemoryStore, clock: FakeClock, scopes: number): void {
    clock.advance(100 * YEAR);
    for (let i = 0; i < SUBJECTS.length * scopes; i += 1) {
      applyBatch(memory, [
        { rule: ruleFrom({ scope: 'look', limit: 1, windowSec: 1 }), subject: SUBJECTS[0]!, operation: LOOK },
      ]);
    }
    expect(memory.size).toBe(memory.blocked({ count: 1000 }).blocks.length);
  }
});

test('a full store keeps the invariants whatever comes', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), threeRules, calls(wait), (maxKeys, parts, sequence) => {
      const clock = new FakeClock(NOON);
      const memory = new MemoryStore({ clock, maxKeys });
      const rules = parts.map((part, i) => ruleFrom({ ...part, scope: `s${String(i)}` }));
      for (const { wait: ms, who, operation: asked } of sequence) {
        clock.advance(ms);
        const batch = rules.map(rule => ({ rule, subject: SUBJECTS[who]!, operation: asked }));
        assert.equal(applyBatch(memory, batch).readings.length, 3);
        // As many counters, and as many blocks.
        assert.ok(memory.size <= 2 * maxKeys);
        const cells = SUBJECTS.flatMap(({ hash }) =>
          memory.inspect(hash).map(({ scope, cell }) => ({ hash, scope, cell })),
        );
        assert.ok(cells.length <= memory.size);
        const standing = cells
          .filter(({ cell }) => isStanding(cell.block, clock.now()))
          .map(({ hash, scope }) => `${hash} ${scope}`);
        const listed = memory.blocked().blocks.map(({ subjectHash, scope }) => `${subjectHash} ${scope}`);
        assert.deepEqual(listed.sort(), standing.sort());
      }
    }),
    runs(60),
  );
});
