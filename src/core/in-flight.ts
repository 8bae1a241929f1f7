/**
 * What can be in flight: the base of its class. The place is kept by {@link InFlight}.
 *
 * A class and not an object literal. Where literals of one line of code often outlive a quick collection, as with many calls
 * under way, V8 makes the later ones among the old objects at once; and then whatever hangs on each, the command, its
 * promise, the caller's closures, stays until the next full collection. Instances of classes it never places like that.
 */
export class Flying {
  /** Makes the compiler refuse a literal in the place of an instance. */
  declare protected readonly isInstance: true;
  place: number | undefined = undefined;
}

/**
 * What is under way, in no order: adding and removing cost the same however much there is.
 *
 * Not a Set. V8 lays a Set out anew after so many additions and deletions, and each layout keeps a reference to the one that
 * replaced it. Once one of them has become old, all that ever passed through the Set outlives the quick collections of young
 * objects, and a busy process spends a third of its time on them.
 */
export class InFlight<T extends Flying> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    item.place = this.#items.push(item) - 1;
  }

  /** @returns false when it was not there (any more). */
  remove(item: T): boolean {
    const { place } = item;
    if (place === undefined) return false;
    item.place = undefined;
    const last = this.#items.pop();
    if (last !== undefined && last !== item) {
      this.#items[place] = last;
      last.place = place;
    }
    return true;
  }

  /** All of them, as they are now. */
  list(): readonly T[] {
    return [...this.#items];
  }

  /** Removes those that `isMeant` says, and answers them. */
  take(isMeant: (item: T) => boolean): readonly T[] {
    const taken = this.#items.filter(isMeant);
    for (const item of taken) this.remove(item);
    return taken;
  }
}
