import type { Holds } from '../../core/cell.js';
import type { Blocked } from './blocks.js';
import type { Digest } from './digest.js';

const FEWEST_PLACES = 8;
/** Beyond, chains of full places grow long. */
const FULL = 0.75;
const SPARE = 1.35;

/** What of a counter does not fit into three numbers. */
export interface Overflow {
  readonly log: number[] | undefined;
  readonly holds: Holds;
}

type Words = Pick<Digest, 'place' | 'second' | 'third' | 'fourth'>;

export type Beside = Blocked | Overflow;

/**
 * Some thousand rows at most, found by linear probing: few enough to be laid out anew within a request. A row removed
 * leaves no mark: those behind it move up, so that a chain is never longer than the rows that stand in it.
 */
export class Segment {
  rows = 0;
  /** Three numbers a row. */
  readonly numbers: Float64Array;
  /** Four words a row. */
  readonly digests: Int32Array;
  /** The capacity of the rule that wrote the row. */
  readonly capacities: Float32Array;
  /** 0 where there is no row. */
  readonly series: Uint32Array;
  /** Made with the first that there is. */
  beside: (Beside | undefined)[] | undefined = undefined;

  constructor(readonly places = FEWEST_PLACES) {
    const buffer = new ArrayBuffer(48 * places);
    this.numbers = new Float64Array(buffer, 0, 3 * places);
    this.digests = new Int32Array(buffer, 24 * places, 4 * places);
    this.capacities = new Float32Array(buffer, 40 * places, places);
    this.series = new Uint32Array(buffer, 44 * places, places);
  }

  /** The row of this digest and series (0: of any), or -1; sought from `from` on, or from the beginning of its chain. */
  find({ place, second, third, fourth }: Words, series: number, from = this.#home(place)): number {
    const { digests } = this;
    for (let row = from; ; row = this.next(row)) {
      const stored = this.series[row];
      if (stored === 0) return -1;
      if ((stored !== series && series !== 0) || digests[4 * row] !== place) continue;
      if (digests[4 * row + 1] !== second || digests[4 * row + 2] !== third) continue;
      if (digests[4 * row + 3] === fourth) return row;
    }
  }

  digestAt(row: number): Words {
    const [place = 0, second = 0, third = 0, fourth = 0] = this.digests.subarray(4 * row, 4 * row + 4);
    return { place, second, third, fourth };
  }

  /** The caller has made sure that there is none yet. */
  insert({ place, second, third, fourth }: Words, series: number): number {
    this.rows += 1;
    this.relayout();
    const row = this.#hole(place);
    this.digests[4 * row] = place;
    this.digests[4 * row + 1] = second;
    this.digests[4 * row + 2] = third;
    this.digests[4 * row + 3] = fourth;
    this.series[row] = series;
    return row;
  }

  remove(row: number): void {
    let hole = row;
    for (let at = this.next(row); this.series[at] !== 0; at = this.next(at)) {
      // A row moves up as far as its home, no further.
      if (this.fromHome(at) < this.#distance(hole, at)) continue;
      this.#copy(this, at, hole);
      hole = at;
    }
    this.series[hole] = 0;
    this.setBeside(hole, undefined);
    this.rows -= 1;
  }

  setBeside(row: number, value: Beside | undefined): void {
    if (value !== undefined) this.beside ??= new Array<Beside | undefined>(this.places);
    if (this.beside !== undefined) this.beside[row] = value;
  }

  /** Lays the rows out anew where places are too few for them, or far too many. */
  relayout(): void {
    const fitting = Math.max(FEWEST_PLACES, Math.ceil((SPARE / FULL) * this.rows));
    if (this.rows <= FULL * this.places && this.places <= 2 * fitting) return;
    const other = new Segment(fitting);
    for (let row = 0; row < this.places; row += 1) {
      if (this.series[row] !== 0) other.#copy(this, row, other.#hole(this.digests[4 * row] ?? 0));
    }
    Object.assign(this, other, { rows: this.rows });
  }

  next(row: number): number {
    return row + 1 === this.places ? 0 : row + 1;
  }

  /** How many places behind its home the row stands. */
  fromHome(row: number): number {
    return this.#distance(this.#home(this.digests[4 * row] ?? 0), row);
  }

  #home(place: number): number {
    return Math.floor(((place >>> 0) / 2 ** 32) * this.places);
  }

  #distance(from: number, to: number): number {
    return to >= from ? to - from : to - from + this.places;
  }

  #hole(place: number): number {
    let row = this.#home(place);
    while (this.series[row] !== 0) row = this.next(row);
    return row;
  }

  #copy(source: Segment, from: number, to: number): void {
    for (let i = 0; i < 3; i += 1) this.numbers[3 * to + i] = source.numbers[3 * from + i] ?? 0;
    for (let i = 0; i < 4; i += 1) this.digests[4 * to + i] = source.digests[4 * from + i] ?? 0;
    this.capacities[to] = source.capacities[from] ?? 0;
    this.series[to] = source.series[from] ?? 0;
    this.setBeside(to, source.beside?.[from]);
  }
}
