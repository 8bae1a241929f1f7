import { Digest } from './digest.js';
import { Segment } from './segment.js';
import { BLOCK, SeriesList } from './series.js';
import type { Kind, Series } from './series.js';

/*
 * Where a row lies: subject and scope ─► digest (place, second, third, fourth)
 *
 *   segments   ▯ ▯ ▮ ▯ ▯ ▯    which one: the low bits of the place. Each grows and shrinks by itself, so that no request
 *                  │          waits for the whole table
 *   segment    ─────▮▮─▮──    where in it: the high bits of the place, then the next place that is free
 *                   │
 *   row        numbers 3 × 8 │ digest 4 × 4 │ capacity 4 │ series 4     48 bytes in typed arrays; beside them, for few
 *                                                             │         rows, an object: a log, holds, or a block
 *   series     scope, algorithm, window ◄─────────────────────┘         shared by its rows, gone with the last one
 *
 * All rows of one scope and subject have the same place, whatever their series: they stand in one chain.
 */

/** Rows a segment where the table is full: some 100 µs to lay it out anew. */
const SEGMENT_ROWS = 2048;
/** Places that the hand passes to find a row: after a flood most are empty. */
const PLACES_A_TURN = 32;

export class Table {
  size = 0;
  /** Counts what moves rows: one that was found is where it was as long as this stands still. */
  moves = 0;
  /** The one at hand: a row that was found, inserted or drawn is of it until the next one is. */
  segment = new Segment();
  readonly series = new SeriesList();
  /** Those in use, in no order. */
  readonly segments: Segment[] = [];
  readonly #slots: (Segment | undefined)[];
  readonly #digest = new Digest();
  #handSegment = 0;
  #handRow = -1;

  /** @param most rows, more or less. */
  constructor(most: number) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(1, most / SEGMENT_ROWS)));
    this.#slots = new Array<undefined>(slots).fill(undefined);
  }

  /** That of a row. */
  seriesOf(row: number): Series {
    return this.series.at(this.segment.series[row]);
  }

  /** The row, or -1. */
  find(hash: string, scope: string, kind: Kind, windowMs = 0): number {
    const series = this.series.find(scope, kind, windowMs);
    if (series === undefined) return -1;
    this.#seek(hash, series.scope.salt);
    return this.segment.find(this.#digest, series.number);
  }

  /** The rows of all series; good until one is inserted or removed. */
  findAll(hash: string, scope: string): number[] {
    const rows: number[] = [];
    const salt = this.series.scopes.get(scope)?.salt;
    if (salt === undefined) return rows;
    this.#seek(hash, salt);
    let row = this.segment.find(this.#digest, 0);
    for (; row >= 0; row = this.segment.find(this.#digest, 0, this.segment.next(row))) rows.push(row);
    return rows;
  }

  /** The row of the block that belongs to a counter's row, or -1. They stand in one chain. */
  blockOf(row: number): number {
    const block = this.seriesOf(row).scope.series.get(BLOCK);
    return block === undefined ? -1 : this.segment.find(this.segment.digestAt(row), block.number);
  }

  /** Adds a row, of which the caller knows that it is not there. */
  insert(hash: string, scope: string, kind: Kind, windowMs = 0): number {
    const series = this.series.take(scope, kind, windowMs);
    this.#seek(hash, series.scope.salt);
    this.size += 1;
    this.moves += 1;
    return this.segment.insert(this.#digest, series.number);
  }

  remove(row: number): void {
    this.series.release(this.seriesOf(row));
    this.segment.remove(row);
    this.size -= 1;
    this.moves += 1;
    // Another may have moved up to where the hand stands.
    if (row === this.#handRow && this.segment === this.segments[this.#handSegment]) this.#handRow -= 1;
  }

  /** The row to which the hand comes next, or -1 where none is near. In time it comes to each. */
  turn(): number {
    for (let places = PLACES_A_TURN; places > 0; places -= 1) {
      const segment = this.segments[this.#handSegment];
      this.#handRow += 1;
      if (segment !== undefined && this.#handRow < segment.places) {
        if (segment.series[this.#handRow] === 0) continue;
        this.segment = segment;
        return this.#handRow;
      }
      segment?.relayout();
      this.moves += 1;
      this.#handSegment = segment === undefined ? 0 : this.#handSegment + 1;
      this.#handRow = -1;
    }
    return -1;
  }

  /** Rows drawn at random, without end. */
  *draws(): Generator<number> {
    for (;;) {
      const segment = this.segments[Math.floor(Math.random() * this.segments.length)];
      if (segment === undefined || segment.rows === 0) continue;
      let row = Math.floor(Math.random() * segment.places);
      while (segment.series[row] === 0) row = segment.next(row);
      this.segment = segment;
      yield row;
    }
  }

  /** Every row; each may be removed as it comes. */
  *all(): Generator<number> {
    for (const segment of this.segments) {
      for (let row = 0; row < segment.places;) {
        const { rows } = segment;
        this.segment = segment;
        if (segment.series[row] !== 0) yield row;
        if (segment.rows === rows) row += 1;
      }
    }
  }

  #seek(hash: string, salt: number): void {
    this.#digest.set(hash, salt);
    const slot = this.#digest.place & (this.#slots.length - 1);
    let segment = this.#slots[slot];
    if (segment === undefined) {
      segment = this.#slots[slot] = new Segment();
      this.segments.push(segment);
    }
    this.segment = segment;
  }
}
