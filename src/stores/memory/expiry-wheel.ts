import { EntryList } from './entry.js';
import type { Entry } from './entry.js';

const SLOTS = 64;
/** 64^9 = 2^54: every whole number of milliseconds that a double holds has its place, no window is too long. */
const LEVELS = 9;
const SPANS = Array.from({ length: LEVELS + 1 }, (_, level) => SLOTS ** level);

/**
 * Which entries are over, without a timer and without ever looking at all of them: a hierarchical timing wheel (Varghese
 * and Lauck, 1987). A slot of level n is 64^n ms wide; an entry hangs in the level of the highest base-64 digit in which
 * its time differs from now.
 *
 * A slot whose time comes may hold every entry there is. So its list is put away whole, in O(1), and whoever asks takes
 * from the lists put away as many as he can afford: O(1) a request, spread over the requests that follow.
 *
 * The wheel has a time of its own, which adds up the steps forward of the clock and ignores those backward: it never runs
 * slower than the clock, so that no entry comes late, and an entry that comes early is filed again by its caller.
 */
export class ExpiryWheel {
  #time = 0;
  #clock: number;
  readonly #slots: (EntryList | undefined)[] = new Array<EntryList | undefined>(LEVELS * SLOTS);
  /** Lists put away: of slots that are over (all due), and of slots that have begun (due, or to be filed lower down). */
  readonly #over = new Lists();
  readonly #begun = new Lists();

  /** @param now the clock's time. */
  constructor(now: number) {
    this.#clock = now;
  }

  /** Moves to the clock's `now`. At most 64 slots a level are looked at, however long the clock has gone unread. */
  advance(now: number): void {
    const step = now - this.#clock;
    this.#clock = now;
    if (step <= 0) return;
    const from = this.#time;
    this.#time += step;
    for (let level = 0; level < LEVELS; level += 1) {
      const span = SPANS[level] ?? 1;
      const last = Math.floor(this.#time / span);
      const first = Math.max(Math.floor(from / span) + 1, last - SLOTS + 1);
      if (first > last) return;
      for (let digit = first; digit <= last; digit += 1) {
        this.#putAway(level, digit, digit === last && level > 0 ? this.#begun : this.#over);
      }
    }
  }

  /** Files the entry so that it comes due at `at` (clock's time, later than its now), wherever it hung before. */
  file(entry: Entry, at: number): void {
    const due = this.#time + (at - this.#clock);
    if (entry.list !== undefined) {
      if (entry.due === due) return;
      entry.list.remove(entry);
    }
    if (at === Infinity) return;
    entry.due = due;
    let level = 0;
    while (!this.#sharesSlot(due, level + 1)) level += 1;
    const index = level * SLOTS + (Math.floor(due / (SPANS[level] ?? 1)) % SLOTS);
    (this.#slots[index] ??= new EntryList()).append(entry);
  }

  remove(entry: Entry): void {
    entry.list?.remove(entry);
  }

  /**
   * Takes an entry that was put away, off the wheel: first those that are due by the wheel's time, then those whose slot
   * has begun. The caller judges it by the clock, and files it again if it is not over.
   */
  take(): Entry | undefined {
    return this.#over.take() ?? this.#begun.take();
  }

  #sharesSlot(due: number, level: number): boolean {
    const span = SPANS[level] ?? 1;
    return level >= LEVELS || Math.floor(due / span) === Math.floor(this.#time / span);
  }

  #putAway(level: number, digit: number, lists: Lists): void {
    const index = level * SLOTS + (digit % SLOTS);
    const list = this.#slots[index];
    if (list?.first === undefined) return;
    this.#slots[index] = undefined;
    lists.add(list);
  }
}

/** A queue of lists, taken from entry by entry. Entries may be removed from their list meanwhile. */
class Lists {
  #lists: EntryList[] = [];
  #head = 0;

  add(list: EntryList): void {
    this.#lists.push(list);
  }

  take(): Entry | undefined {
    for (let list = this.#lists[this.#head]; list !== undefined; list = this.#lists[this.#head]) {
      const entry = list.first;
      if (entry !== undefined) {
        list.remove(entry);
        return entry;
      }
      this.#head += 1;
    }
    if (this.#head > 0) {
      this.#lists = [];
      this.#head = 0;
    }
    return undefined;
  }
}
