import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import { algorithms } from '../../../src/algorithms/index.js';
import { heldUnits } from '../../../src/core/cell.js';
import type { Cell } from '../../../src/core/cell.js';
import { decide } from '../../../src/core/decide.js';
import { readCounter, rowShare, rowUntil, writeCounter } from '../../../src/stores/memory/row.js';
import { Table } from '../../../src/stores/memory/table.js';
import {
  ALL_OPERATIONS,
  extremeRule,
  play,
  ruleFrom,
  runs,
  smallRule,
  steps,
} from '../../support/sequences.js';
import { subject } from '../../support/subjects.js';

const alice = subject('alice');

test.each([
  ['small', smallRule()],
  ['extreme', extremeRule],
])('a row tells the counter that was written, and when it is over: %s rules', (_name, parts) => {
  fc.assert(
    fc.property(parts, steps(ALL_OPERATIONS), (part, sequence) => {
      const rule = ruleFrom(part);
      const table = new Table(10);
      const row = table.insert(alice.hash, 's', rule.algorithm, rule.windowMs);
      const { segment } = table;
      let cell: Cell | undefined;
      play(rule, sequence, (operation, now) => {
        const outcome = decide([{ rule, subject: alice, operation }], [cell], now);
        [cell] = outcome.cells;
        const counter = cell?.counters[0];
        if (counter !== undefined) {
          writeCounter(segment, row, counter, rule);
          const series = table.seriesOf(row);
          assert.deepEqual(readCounter(segment, row, series), counter);
          assert.equal(rowUntil(segment, row, series), counter.until);
          const used = algorithms[rule.algorithm].used(counter.state, rule, now) / rule.windowMs;
          const share = (used + heldUnits(counter.holds, now)) / rule.capacity;
          assert.ok(Math.abs(rowShare(segment, row, series, now) - share) <= 1e-6 * (1 + share));
        }
        return outcome.readings[0]!;
      });
    }),
    runs(200),
  );
});
