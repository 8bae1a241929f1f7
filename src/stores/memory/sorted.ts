const MOST = 512;

/** Where an item stands: by key, then by number. Both together are unique, and keys are all texts or all numbers. */
interface Place {
  readonly key: string | number;
  readonly number: number;
}

/**
 * Items in order, at a price that grows slowly with their number: they lie in pieces of some hundred, and what comes or
 * goes moves those of its own piece only.
 */
export class Sorted<Item extends Place> {
  readonly #pieces: Item[][] = [[]];

  get first(): Item | undefined {
    return this.#pieces[0]?.[0];
  }

  add(item: Item): void {
    const at = this.#pieceAt(item);
    const piece = this.#pieces[at] ?? [];
    piece.splice(countUpTo(item, piece), 0, item);
    if (piece.length > MOST) this.#pieces.splice(at + 1, 0, piece.splice(MOST / 2));
  }

  /** Removes the item that stands there. */
  remove(place: Place): void {
    const at = this.#pieceAt(place);
    const piece = this.#pieces[at] ?? [];
    piece.splice(countUpTo(place, piece) - 1, 1);
    if (piece.length === 0 && this.#pieces.length > 1) this.#pieces.splice(at, 1);
  }

  /** Those behind a place, in order. */
  *after(place: Place): Generator<Item> {
    const [piece = [], ...later] = this.#pieces.slice(this.#pieceAt(place));
    yield* piece.slice(countUpTo(place, piece));
    for (const next of later) yield* next;
  }

  /** The last piece that begins no later; the first one, where none does. */
  #pieceAt(place: Place): number {
    return Math.max(0, countUpTo(place, this.#pieces, piece => piece[0]) - 1);
  }
}

/** How many of a list in order stand no later than the place. */
function countUpTo<T>(
  place: Place,
  list: readonly T[],
  placeOf = (item: T) => item as Place | undefined,
): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = placeOf(list[middle] as T);
    const isBehind =
      item?.key === place.key ? item.number > place.number : item !== undefined && item.key > place.key;
    if (isBehind) high = middle;
    else low = middle + 1;
  }
  return low;
}
