import { usedIn } from '../../algorithms/index.js';
import { heldUnits } from '../../core/cell.js';
import type { Cell } from '../../core/cell.js';
import type { Rule } from '../../core/rule.js';

/** Numbers kept per entry: its share when last written, from when that falls, when it is 0, when the entry is over. */
const WIDTH = 4;

/**
 * How full each entry is, by its position in the table: one row of an array of doubles, because a full store compares
 * sixteen entries drawn at random for each new one, and following the objects of each costs ten times as much.
 *
 * An estimate between writes: constant, then falling in a straight line. That is exact for buckets, fixed windows, and
 * sliding windows after their first; for the rest it may be too high, and the entry stays a little longer.
 */
export class Fills {
  #rows = new Float64Array(WIDTH * 256);

  /** Makes room for `size` rows. */
  reserve(size: number): void {
    if (WIDTH * size <= this.#rows.length) return;
    const rows = new Float64Array(2 * this.#rows.length);
    rows.set(this.#rows);
    this.#rows = rows;
  }

  /** The cell at `position` was written at `now`; `rule` is the one that it was written by. */
  set(position: number, cell: Cell, rule: Rule, until: number, now: number): void {
    const counter = cell.counters.find(c => c.algorithm === rule.algorithm && c.windowMs === rule.windowMs);
    let share = 0;
    let fallsFrom = until;
    let emptyAt = until;
    if (counter !== undefined && rule.capacity > 0) {
      const held = heldUnits(counter.holds, now);
      const used = usedIn(rule.algorithm, counter.state, rule, now) / rule.windowMs;
      share = (used + held) / rule.capacity;
      emptyAt = counter.until;
      fallsFrom = held > 0 ? emptyAt : Math.max(now, fallStart(rule, emptyAt, now));
    }
    const row = WIDTH * position;
    this.#rows[row] = share;
    this.#rows[row + 1] = fallsFrom;
    this.#rows[row + 2] = emptyAt;
    this.#rows[row + 3] = until;
  }

  /** Used and held as a share of the capacity; -1 for an entry that is over. */
  share(position: number, now: number): number {
    const row = WIDTH * position;
    if (now >= this.until(position)) return -1;
    const share = this.#rows[row] ?? 0;
    const fallsFrom = this.#rows[row + 1] ?? 0;
    const emptyAt = this.#rows[row + 2] ?? 0;
    if (now >= emptyAt) return 0;
    return now <= fallsFrom ? share : (share * (emptyAt - now)) / (emptyAt - fallsFrom);
  }

  until(position: number): number {
    return this.#rows[WIDTH * position + 3] ?? 0;
  }

  swap(a: number, b: number): void {
    for (let i = 0; i < WIDTH; i += 1) {
      const one = this.#rows[WIDTH * a + i] ?? 0;
      this.#rows[WIDTH * a + i] = this.#rows[WIDTH * b + i] ?? 0;
      this.#rows[WIDTH * b + i] = one;
    }
  }
}

function fallStart(rule: Rule, emptyAt: number, now: number): number {
  switch (rule.algorithm) {
    case 'token-bucket':
    case 'leaky-bucket':
      return now;
    case 'sliding-window':
      // The units of the last window fade while the one after it runs.
      return emptyAt - rule.windowMs;
    default:
      return emptyAt;
  }
}
