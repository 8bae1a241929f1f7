import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import { NONE, usedIn } from '../../../src/algorithms/index.js';
import { heldUnits } from '../../../src/core/cell.js';
import type { Cell } from '../../../src/core/cell.js';
import { Check } from '../../../src/core/check.js';
import { decideCells } from '../../../src/core/decide-cells.js';
import { counterAt, loadRow, rowShare, rowUntil, saveRow } from '../../../src/stores/memory/row.js';
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

/** Those that the algorithm of the check looks at; a row keeps a number of its own in those left over. */
function registersOf({ rule, a, b, c, log, holds }: Check) {
  if (a === NONE) return { a, holds };
  if (rule.algorithm === 'sliding-log') return { b, log, holds };
  return rule.algorithm === 'sliding-window' ? { a, b, c, holds } : { a, b, holds };
}

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
        const check = new Check(rule, alice, operation);
        [cell] = decideCells([check], [cell], now);
        const counter = cell?.counters[0];
        if (counter !== undefined) {
          saveRow(segment, row, check);
          const series = table.seriesOf(row);
          assert.deepEqual(counterAt(segment, row, series), counter);
          const loaded = check.with(operation);
          loadRow(segment, row, loaded);
          assert.deepEqual(registersOf(loaded), registersOf(check));
          assert.equal(rowUntil(segment, row, series), counter.until);
          const used = usedIn(rule.algorithm, counter.state, rule, now) / rule.windowMs;
          const share = (used + heldUnits(counter.holds, now)) / rule.capacity;
          assert.ok(Math.abs(rowShare(segment, row, series, now) - share) <= 1e-6 * (1 + share));
        }
        return check.reading;
      });
    }),
    runs(200),
  );
});
