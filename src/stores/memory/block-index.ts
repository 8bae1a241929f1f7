import type { Entry } from './entry.js';

/**
 * The entries with a block, in the order in which the blocks began, and by the hashes of their subjects' parts.
 *
 * Each gets a number, higher than any before; a page goes on behind the number where the last one ended, whatever came or
 * went between. What is removed leaves a gap, and the list is closed up when half of it are gaps.
 */
export class BlockIndex {
  #list: { readonly number: number; readonly entry: Entry }[] = [];
  #listed = 0;
  #last = 0;
  readonly #byPart = new Map<string, Set<Entry>>();

  /** Lists the entry, or finds it listed already and then only learns its parts. */
  add(entry: Entry, parts: readonly string[]): void {
    if (entry.blockNumber === 0) {
      this.#last += 1;
      this.#listed += 1;
      entry.blockNumber = this.#last;
      this.#list.push({ number: this.#last, entry });
    } else {
      this.#forgetParts(entry);
    }
    entry.parts = parts;
    for (const part of parts) {
      const entries = this.#byPart.get(part);
      if (entries === undefined) this.#byPart.set(part, new Set([entry]));
      else entries.add(entry);
    }
  }

  remove(entry: Entry): void {
    if (entry.blockNumber === 0) return;
    entry.blockNumber = 0;
    this.#listed -= 1;
    this.#forgetParts(entry);
    if (this.#list.length > 32 && this.#listed * 2 < this.#list.length) {
      this.#list = this.#list.filter(({ number, entry: listed }) => listed.blockNumber === number);
    }
  }

  /** The entries behind `number`, in order. */
  *after(number: number): Generator<Entry> {
    const list = this.#list;
    for (let i = firstAbove(list, number); i < list.length; i += 1) {
      const place = list[i];
      if (place !== undefined && place.entry.blockNumber === place.number) yield place.entry;
    }
  }

  /** The same among the entries of subjects with this part. */
  *ofPart(part: string, number: number): Generator<Entry> {
    const entries = [...(this.#byPart.get(part) ?? [])].filter(entry => entry.blockNumber > number);
    yield* entries.sort((a, b) => a.blockNumber - b.blockNumber);
  }

  #forgetParts(entry: Entry): void {
    for (const part of entry.parts) {
      const entries = this.#byPart.get(part);
      entries?.delete(entry);
      if (entries?.size === 0) this.#byPart.delete(part);
    }
    entry.parts = [];
  }
}

function firstAbove(list: readonly { readonly number: number }[], number: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle]?.number ?? 0) > number) high = middle;
    else low = middle + 1;
  }
  return low;
}
