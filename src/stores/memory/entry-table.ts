import type { Entry } from './entry.js';
import { Fills } from './fill.js';

/**
 * All entries: found by subject and scope, and drawn at random.
 *
 * The dense array has two parts: first the entries without a block, then those with one. So an entry without a block can
 * be found at once, however few there are.
 */
export class EntryTable {
  readonly #bySubject = new Map<string, Entry>();
  readonly #dense: Entry[] = [];
  /** How full each is, by position. */
  readonly fills = new Fills();
  /** Entries without a block: `#dense[0 … #open - 1]`. */
  #open = 0;

  get size(): number {
    return this.#dense.length;
  }

  /** How many have no block. */
  get openSize(): number {
    return this.#open;
  }

  at(position: number): Entry | undefined {
    return this.#dense[position];
  }

  find(subjectHash: string, scope: string): Entry | undefined {
    let entry = this.#bySubject.get(subjectHash);
    while (entry !== undefined && entry.scope !== scope) entry = entry.sibling;
    return entry;
  }

  ofSubject(subjectHash: string): Entry[] {
    const entries: Entry[] = [];
    for (let e = this.#bySubject.get(subjectHash); e !== undefined; e = e.sibling) entries.push(e);
    return entries;
  }

  /** The caller has made sure that no entry of this subject and scope is there. */
  add(entry: Entry): void {
    const first = this.#bySubject.get(entry.subjectHash);
    if (first === undefined) this.#bySubject.set(entry.subjectHash, entry);
    else {
      // Behind the first: the map need not be written.
      entry.sibling = first.sibling;
      first.sibling = entry;
    }
    entry.position = this.#dense.push(entry) - 1;
    this.fills.reserve(this.#dense.length);
    this.markOpen(entry);
  }

  remove(entry: Entry): void {
    this.markBlocked(entry);
    const last = this.#dense.length - 1;
    this.#swap(entry.position, last);
    this.#dense.pop();
    entry.position = -1;
    this.#unchain(entry);
  }

  markOpen(entry: Entry): void {
    if (entry.position < this.#open) return;
    this.#swap(entry.position, this.#open);
    this.#open += 1;
  }

  markBlocked(entry: Entry): void {
    if (entry.position >= this.#open) return;
    this.#open -= 1;
    this.#swap(entry.position, this.#open);
  }

  /** A copy, which stays good while entries are removed. */
  all(): Entry[] {
    return [...this.#dense];
  }

  #swap(a: number, b: number): void {
    const one = this.#dense[a];
    const other = this.#dense[b];
    if (one === undefined || other === undefined || a === b) return;
    this.#dense[a] = other;
    this.#dense[b] = one;
    other.position = a;
    one.position = b;
    this.fills.swap(a, b);
  }

  #unchain(entry: Entry): void {
    const first = this.#bySubject.get(entry.subjectHash);
    if (first === entry) {
      if (entry.sibling === undefined) this.#bySubject.delete(entry.subjectHash);
      else this.#bySubject.set(entry.subjectHash, entry.sibling);
    } else {
      let before = first;
      while (before !== undefined && before.sibling !== entry) before = before.sibling;
      if (before !== undefined) before.sibling = entry.sibling;
    }
    entry.sibling = undefined;
  }
}
