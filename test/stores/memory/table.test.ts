import { createHash, randomBytes } from 'node:crypto';
import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import type { Segment } from '../../../src/stores/memory/segment.js';
import { Table } from '../../../src/stores/memory/table.js';
import { runs } from '../../support/sequences.js';

const random = (): string => randomBytes(32).toString('hex');
const KIND = 'sliding-window';

function filled(hashes: readonly string[], most: number): Table {
  const table = new Table(most);
  for (const hash of hashes) table.insert(hash, 's', KIND, 60_000);
  return table;
}

/** Places looked at to find each row once, on the average. */
function probes({ segments }: Table): number {
  const all = segments.flatMap(segment => rowsOf(segment).map(row => 1 + segment.fromHome(row)));
  return all.reduce((sum, places) => sum + places, 0) / all.length;
}

const rowsOf = (segment: Segment): number[] =>
  [...segment.series.keys()].filter(row => segment.series[row] !== 0);

describe('where rows lie is a secret of the table', () => {
  const COUNT = 20_000;
  const digits = (text: string) => (at: number) => (hash: string) =>
    hash.slice(0, at) + text + hash.slice(at + text.length);

  test.each([
    // A hash keeps 32 of its 64 digits in a row, in four words of eight: whoever knows that chooses any of them.
    ['the first word', digits('00000000')(32)],
    ['the second word', digits('00000000')(40)],
    ['the third word', digits('00000000')(48)],
    ['the last word', digits('00000000')(56)],
    ['the low bits of each word', (hash: string) => hash.replace(/(.{4})(.{4})/g, '$10000')],
    ['the high bits of each word', (hash: string) => hash.replace(/(.{4})(.{4})/g, '0000$2')],
    ['all but 20 bits', (hash: string) => digits(hash.slice(0, 27))(32)(hash)],
  ])('20,000 subjects that share %s cost no more than any', (_what, choose) => {
    const usual = filled(Array.from({ length: COUNT }, random), 100_000);
    const chosen = filled(
      Array.from({ length: COUNT }, () => choose(random())),
      100_000,
    );
    expect(probes(chosen)).toBeLessThan(2 * probes(usual));
    const largest = (table: Table) => Math.max(...table.segments.map(({ rows }) => rows));
    expect(largest(chosen)).toBeLessThan(2 * largest(usual));
  });

  test('subjects that count up, whose hashes are nothing but 0 for the rest, too', () => {
    const counting = filled(
      Array.from({ length: COUNT }, (_, i) => i.toString(16).padStart(64, '0')),
      100_000,
    );
    expect(probes(counting)).toBeLessThan(2 * probes(filled(Array.from({ length: COUNT }, random), 100_000)));
  });

  test('no two tables have the same', () => {
    const hashes = Array.from({ length: 100 }, random);
    const order = () => {
      const table = filled(hashes, 100);
      return hashes.map(hash => table.find(hash, 's', KIND, 60_000));
    };
    expect(order()).not.toEqual(order());
  });

  test('one subject in 2,000 scopes makes no long chain', () => {
    const table = new Table(100_000);
    const hash = random();
    for (let i = 0; i < 2000; i += 1) table.insert(hash, `s${String(i)}`, KIND, 60_000);
    expect(probes(table)).toBeLessThan(4);
  });
});

test('it grows in steps: no row that comes moves more than those of one segment, some thousand', () => {
  const table = new Table(200_000);
  let seen = new Map<Segment, number>();
  for (let i = 0; i < 200_000; i += 1) {
    table.insert(createHash('sha256').update(String(i)).digest('hex'), 's', KIND, 60_000);
    const now = new Map<Segment, number>();
    if (i % 1000 !== 0 && i > 2000) continue;
    for (const segment of table.segments) now.set(segment, segment.places);
    const changed = table.segments.filter(
      segment => seen.has(segment) && seen.get(segment) !== segment.places,
    );
    if (i < 2000) expect(changed.length).toBeLessThanOrEqual(1);
    seen = now;
  }
  expect(table.segments.length).toBeGreaterThanOrEqual(64);
  for (const { rows, places } of table.segments) {
    expect(rows).toBeLessThan(4096);
    expect(places).toBeLessThan(2 * 4096);
  }
});

describe('against a plain map', () => {
  const step = fc.record({
    who: fc.nat(30),
    scope: fc.constantFrom('a', 'b'),
    windowMs: fc.constantFrom(1, 60_000),
    remove: fc.boolean(),
    turns: fc.nat(3),
  });
  const hashes = Array.from({ length: 31 }, random);

  test('finds what is there and nothing else, whatever was removed between', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300, size: 'max' }), steps => {
        const table = new Table(100);
        const model = new Map<string, number>();
        for (const [i, { who, scope, windowMs, remove, turns }] of steps.entries()) {
          const hash = hashes[who]!;
          const name = `${hash} ${scope} ${String(windowMs)}`;
          const row = table.find(hash, scope, KIND, windowMs);
          assert.equal(row >= 0 ? table.segment.numbers[3 * row] : undefined, model.get(name));
          if (row >= 0 && remove) {
            table.remove(row);
            model.delete(name);
          } else if (row < 0) {
            table.segment.numbers[3 * table.insert(hash, scope, KIND, windowMs)] = i;
            // The segment may have been laid out anew by the insertion.
            table.segment.numbers[3 * table.find(hash, scope, KIND, windowMs)] = i;
            model.set(name, i);
          }
          for (let n = 0; n < turns; n += 1) table.turn();
          assert.equal(table.size, model.size);
        }
        for (const hash of hashes) {
          for (const scope of ['a', 'b']) {
            const rows = table.findAll(hash, scope);
            const found = rows.map(row => table.segment.numbers[3 * row]!).sort((a, b) => a - b);
            const known = [...model]
              .filter(([name]) => name.startsWith(`${hash} ${scope} `))
              .map(([, i]) => i);
            assert.deepEqual(
              found,
              known.sort((a, b) => a - b),
            );
          }
        }
      }),
      runs(150),
    );
  });
});

describe('the hand', () => {
  test('comes to every row in time, and gives back the room of those that went', () => {
    const table = filled(Array.from({ length: 5000 }, random), 10_000);
    const places = () => table.segments.reduce((sum, segment) => sum + segment.places, 0);
    const full = places();
    for (let n = 0; n < 5000 + table.segments.length; n += 1) {
      const row = table.turn();
      if (row >= 0) table.remove(row);
    }
    for (let n = 0; n < full / 32 + 100; n += 1) table.turn();
    expect(table.size).toBe(0);
    expect(places()).toBe(8 * table.segments.length);
  });

  test('a turn passes a few places, however empty the table', () => {
    const table = filled(Array.from({ length: 5000 }, random), 10_000);
    for (const row of table.all()) table.remove(row);
    expect(table.turn()).toBe(-1);
  });
});

describe('series', () => {
  test('leave with their last row, and their numbers are used again', () => {
    const table = new Table(1000);
    const hash = random();
    let last = 0;
    for (let windowMs = 1; windowMs <= 10_000; windowMs += 1) {
      const row = table.insert(hash, `s${String(windowMs % 7)}`, KIND, windowMs);
      last = Math.max(last, table.segment.series[row]!);
      if (windowMs > 10)
        table.remove(table.find(hash, `s${String((windowMs - 10) % 7)}`, KIND, windowMs - 10));
    }
    expect(last).toBeLessThanOrEqual(11);
    for (const row of table.all()) table.remove(row);
    expect(table.series.scopes.size).toBe(0);
  });

  test('windows up to ten years are told apart, in every algorithm', () => {
    const table = new Table(1000);
    const hash = random();
    const tenYears = 315_576_000_000;
    const kinds = [
      'sliding-window',
      'fixed-window',
      'sliding-log',
      'token-bucket',
      'leaky-bucket',
      'block',
    ] as const;
    for (const kind of kinds) {
      for (const windowMs of [tenYears - 1, tenYears]) table.insert(hash, 's', kind, windowMs);
    }
    const numbers = table.findAll(hash, 's').map(row => table.segment.series[row]);
    expect(new Set(numbers).size).toBe(12);
    for (const kind of kinds)
      expect(table.seriesOf(table.find(hash, 's', kind, tenYears)).windowMs).toBe(tenYears);
  });
});
