import { cellForgettableAt } from '../../../src/core/cell.js';
import { decideCells } from '../../../src/core/decide-cells.js';
import type { Operation } from '../../../src/core/operation.js';
import type { Rule } from '../../../src/core/rule.js';
import { newEntry } from '../../../src/stores/memory/entry.js';
import { EntryTable } from '../../../src/stores/memory/entry-table.js';
import { pickVictim } from '../../../src/stores/memory/eviction.js';
import { NOON } from '../../support/decisions.js';
import { consume, rule, subject } from '../../support/subjects.js';

const alice = subject('alice');

/** Writes what the operation leaves, at a time, as the store does. */
function write(table: EntryTable, counted: Rule, operation: Operation, at: number): void {
  const [cell] = decideCells([{ rule: counted, subject: alice, operation }], [undefined], at).cells;
  const entry = newEntry(counted.scope, alice.hash, cell!);
  entry.until = cellForgettableAt(cell!);
  table.add(entry);
  table.fills.set(entry.position, cell!, counted, entry.until, at);
}

test('an empty table has nobody to go', () => {
  expect(pickVictim(new EntryTable(), NOON)).toBeUndefined();
});

test('what is over goes before the emptiest, though the wheel has not come to it', () => {
  const table = new EntryTable();
  write(table, rule({ scope: 'nearly empty', limit: 1000 }), consume(1), NOON);
  write(table, rule({ scope: 'over', windowSec: 2, algorithm: 'fixed-window' }), consume(10), NOON);
  expect(pickVictim(table, NOON + 1999)?.scope).toBe('nearly empty');
  expect(pickVictim(table, NOON + 2000)?.scope).toBe('over');
});

test('of two that are as full, the one that is over first', () => {
  const table = new EntryTable();
  write(table, rule({ scope: 'later', windowSec: 90 }), consume(5), NOON);
  write(table, rule({ scope: 'sooner', windowSec: 60 }), consume(5), NOON);
  write(table, rule({ scope: 'later still', windowSec: 120 }), consume(5), NOON);
  expect(pickVictim(table, NOON)?.scope).toBe('sooner');
});

test('how full each is stays with it while others come and go', () => {
  const table = new EntryTable();
  for (let i = 0; i < 1000; i += 1) {
    write(table, rule({ scope: `s${String(i)}`, limit: 2000 }), consume(1000 + i), NOON);
  }
  for (let i = 0; i < 900; i += 1) {
    const entry = table.find(alice.hash, `s${String((i * 7) % 1000)}`)!;
    if (i % 3 === 0) table.markBlocked(entry);
    if (i % 6 === 0) table.markOpen(entry);
    if (i % 2 === 0) table.remove(entry);
  }
  for (const entry of table.all()) {
    expect(table.fills.share(entry.position, NOON)).toBe((1000 + Number(entry.scope.slice(1))) / 2000);
  }
  expect(table.size).toBe(550);
});
