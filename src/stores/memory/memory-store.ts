import { knownOptions, plainObject, wholeNumber } from '../../core/validate.js';
import { systemClock } from '../../core/clock.js';
import type { Clock } from '../../core/clock.js';
import type { Check } from '../../core/check.js';
import { isStanding } from '../../core/block.js';
import { rangeError, received } from '../../core/errors.js';
import type { BlockEntry, BlockPage, BlockQuery, Store, StoredCell } from '../../core/store.js';
import { checkBlockQuery } from '../block-query.js';
import { checkClock, readClock } from '../clock.js';
import { blockEntry, liveCell } from '../live-cell.js';
import { Cells } from './cells.js';

/** Options of {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /** Tells the store's time. Default: `Date.now`. */
  readonly clock?: Clock | undefined;
  /**
   * The most counters (one rule of one subject each) kept at once, and apart from them the most blocks: 1 to 16,000,000,
   * default 500,000. A counter takes some 70 bytes (a sliding log 16 more an entry), a block some 800.
   */
  readonly maxKeys?: number | undefined;
}

const DEFAULT_MAX_KEYS = 500_000;
const MOST_KEYS = 16_000_000;
/** Rows that a check looks at for what is over: more than it adds. */
const LOOKS = 2;

/**
 * Counts in the memory of this process, synchronously: a decision takes a few microseconds and no promise. The default
 * store of every limiter; it forgets all when the process ends, and several processes count apart.
 *
 * Bounded: at `maxKeys`, what is over goes first, then (by sampling) the emptiest counter. A flood of new subjects
 * therefore drives out its own counters. The price: a counter that goes early was nearly empty, and its subject may use up
 * those few units again. Blocks have as much room of their own, which counters cannot take nor they theirs: a flood of
 * subjects frees nobody who is blocked, a flood of blocks ends no limit. Of too many, those that end first go.
 *
 * It has no timer and holds no process open: each call sweeps a handful of what is over.
 *
 * @example
 * const store = new MemoryStore({ maxKeys: 10_000 });
 * const limiter = createLimiter({ scope: 'api.user', limit: 100, windowSec: 60, store });
 */
export class MemoryStore implements Store {
  /** Each process counts for itself. */
  readonly perProcess = true;
  readonly #clock: Clock;
  readonly #maxKeys: number;
  #cells: Cells;

  /**
   * @throws TypeError or RangeError (`ERR_LIMITKEEPER_OPTION_TYPE`, `_OPTION_RANGE`, `_UNKNOWN_OPTION`) naming the option.
   */
  constructor(options: MemoryStoreOptions = {}) {
    knownOptions(plainObject(options, 'the options of MemoryStore'), ['clock', 'maxKeys'], 'MemoryStore');
    const { clock = systemClock, maxKeys = DEFAULT_MAX_KEYS } = options;
    this.#clock = checkClock(clock);
    this.#maxKeys = checkMaxKeys(maxKeys);
    this.#cells = new Cells(this.#maxKeys);
    readClock(this.#clock);
  }

  /** Counters and blocks stored now, those that are over and not yet swept among them. Of neither more than `maxKeys`. */
  get size(): number {
    return this.#cells.size;
  }

  decide(checks: readonly Check[]): number {
    const now = readClock(this.#clock);
    this.#cells.sweep(LOOKS * checks.length, now);
    this.#cells.decide(checks, now);
    return now;
  }

  inspect(subjectHash: string): StoredCell[] {
    return this.#live(subjectHash, this.#cells.scopes);
  }

  reset(subjectHash: string, scope?: string): StoredCell[] {
    const scopes = scope === undefined ? this.#cells.scopes : [scope];
    const removed = this.#live(subjectHash, scopes);
    for (const name of scopes) this.#cells.forget(subjectHash, name, true);
    return removed;
  }

  /** Pages stay in step whatever begins or ends between them: in the order in which the blocks began. */
  blocked(query: BlockQuery = {}): BlockPage {
    const { cursor, part, count } = checkBlockQuery(query);
    const from = cursor === undefined ? 0 : wholeNumber(Number(cursor), 'cursor', 0);
    const now = readClock(this.#clock);
    const blocks: BlockEntry[] = [];
    let last = 0;
    for (const { hash, scope, block, number } of this.#cells.blocks.after(from, part)) {
      // One that is over stays listed until the sweep finds it.
      if (!isStanding(block, now)) continue;
      if (blocks.length === count) return { blocks, cursor: String(last) };
      blocks.push(blockEntry(hash, scope, block));
      last = number;
    }
    return { blocks };
  }

  clear(scopes?: readonly string[]): void {
    if (scopes === undefined) this.#cells = new Cells(this.#maxKeys);
    else this.#cells.clear(new Set(scopes));
  }

  /**
   * Does nothing: there is no timer to stop and no connection to end, and other limiters may count in the same store. It
   * goes on working; its memory is freed with the last reference to it.
   */
  close(): void {
    // See above: there is nothing of its own to release.
  }

  #live(hash: string, scopes: readonly string[]): StoredCell[] {
    const now = readClock(this.#clock);
    return scopes.flatMap(scope => {
      const cell = this.#cells.inspect(hash, scope);
      return (cell && liveCell({ scope, cell }, now)) ?? [];
    });
  }
}

function checkMaxKeys(maxKeys: unknown): number {
  const checked = wholeNumber(maxKeys, 'maxKeys', 1);
  if (checked <= MOST_KEYS) return checked;
  throw rangeError(
    'ERR_LIMITKEEPER_OPTION_RANGE',
    `maxKeys must be at most ${String(MOST_KEYS)}, got ${received(checked)}. Use a shared store for more.`,
    { option: 'maxKeys' },
  );
}
