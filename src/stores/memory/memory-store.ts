import { isStanding } from '../../core/block.js';
import { cellForgettableAt } from '../../core/cell.js';
import type { Cell } from '../../core/cell.js';
import { knownOptions, plainObject, wholeNumber } from '../../core/check.js';
import { systemClock } from '../../core/clock.js';
import type { Clock } from '../../core/clock.js';
import { decideCells } from '../../core/decide-cells.js';
import { rangeError, received, typeError } from '../../core/errors.js';
import type { Batch, BatchItem, HashedSubject } from '../../core/operation.js';
import type { BatchResult, BlockEntry, BlockPage, BlockQuery, Store, StoredCell } from '../../core/store.js';
import { checkBlockQuery } from '../block-query.js';
import { blockEntry, liveCells, standingBlock } from '../live-cell.js';
import { BlockIndex } from './block-index.js';
import { newEntry } from './entry.js';
import type { Entry } from './entry.js';
import { EntryTable } from './entry-table.js';
import { pickVictim } from './eviction.js';
import { ExpiryWheel } from './expiry-wheel.js';

/** Options of {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /** Tells the store's time. Default: `Date.now`. */
  readonly clock?: Clock | undefined;
  /**
   * The most cells (one scope of one subject each) kept at once, 1 to 16,000,000; default 100,000, which takes some 80 MB
   * when full.
   */
  readonly maxKeys?: number | undefined;
}

const DEFAULT_MAX_KEYS = 100_000;
/** Below 2^24, where a Map of V8 ends. */
const MOST_KEYS = 16_000_000;
/** Entries put away by the wheel that an item of a batch deals with: it adds one at most, which is filed a few times. */
const SWEEP = 6;
/** The same where room is needed. */
const SWEEP_FULL = 64;

/**
 * Counts in the memory of this process, synchronously: a decision takes a few microseconds and no promise. The default
 * store of every limiter; it forgets all when the process ends, and several processes count apart.
 *
 * Bounded: at `maxKeys`, what is over goes first, then (by sampling) the emptiest counter, and a standing block only
 * where nothing but blocks is stored; then the one that ends first. Whoever floods it with new subjects therefore drives
 * out his own counters, and frees nobody who is blocked. The price: a counter that goes early was nearly empty, and its
 * subject may use up those few units again.
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
  #table = new EntryTable();
  #blocks = new BlockIndex();
  #wheel: ExpiryWheel;

  /**
   * @throws TypeError or RangeError (`ERR_LIMITKEEPER_OPTION_TYPE`, `_OPTION_RANGE`, `_UNKNOWN_OPTION`) naming the option.
   */
  constructor(options: MemoryStoreOptions = {}) {
    knownOptions(plainObject(options, 'the options of MemoryStore'), ['clock', 'maxKeys'], 'MemoryStore');
    const { clock = systemClock, maxKeys = DEFAULT_MAX_KEYS } = options;
    this.#clock = checkClock(clock);
    this.#maxKeys = checkMaxKeys(maxKeys);
    this.#wheel = new ExpiryWheel(this.#now());
  }

  /** Cells stored now; those that are over and not yet swept count. Never more than `maxKeys`. */
  get size(): number {
    return this.#table.size;
  }

  apply(batch: Batch): BatchResult {
    const now = this.#now();
    this.#wheel.advance(now);
    this.#sweep(SWEEP * batch.length, now);
    const entries = batch.map(({ rule, subject }) => this.#table.find(subject.hash, rule.scope));
    const stored = entries.map(entry => entry?.cell);
    const { readings, cells, blockStarted } = decideCells(batch, stored, now);
    batch.forEach((item, i) => {
      const cell = cells[i];
      if (cell !== stored[i]) this.#write(item, entries[i], cell, now);
    });
    return { at: now, readings, blockStarted };
  }

  inspect(subjectHash: string): StoredCell[] {
    return liveCells(this.#table.ofSubject(subjectHash), this.#now());
  }

  reset(subjectHash: string, scope?: string): StoredCell[] {
    const entries = this.#table
      .ofSubject(subjectHash)
      .filter(entry => scope === undefined || entry.scope === scope);
    for (const entry of entries) this.#remove(entry);
    return liveCells(entries, this.#now());
  }

  /** Pages stay in step whatever begins or ends between them: in the order in which the blocks began. */
  blocked(query: BlockQuery = {}): BlockPage {
    const { cursor, part, count } = checkBlockQuery(query);
    const number = cursor === undefined ? 0 : wholeNumber(Number(cursor), 'cursor', 0);
    const now = this.#now();
    const entries = part === undefined ? this.#blocks.after(number) : this.#blocks.ofPart(part, number);
    const blocks: BlockEntry[] = [];
    let last = 0;
    for (const entry of entries) {
      const block = standingBlock(entry.cell, now);
      // One that has ended stays listed until the sweep finds it.
      if (block === undefined) continue;
      if (blocks.length === count) return { blocks, cursor: String(last) };
      blocks.push(blockEntry(entry.subjectHash, entry.scope, block));
      last = entry.blockNumber;
    }
    return { blocks };
  }

  clear(scopes?: readonly string[]): void {
    if (scopes === undefined) {
      this.#table = new EntryTable();
      this.#blocks = new BlockIndex();
      this.#wheel = new ExpiryWheel(this.#now());
      return;
    }
    const named = new Set(scopes);
    for (const entry of this.#table.all()) if (named.has(entry.scope)) this.#remove(entry);
  }

  /**
   * Does nothing: there is no timer to stop and no connection to end, and other limiters may count in the same store. It
   * goes on working; its memory is freed with the last reference to it.
   */
  close(): void {
    // See above: there is nothing of its own to release.
  }

  #now(): number {
    const now = this.#clock.now();
    if (Number.isSafeInteger(now) && now >= 0) return now;
    throw rangeError(
      'ERR_LIMITKEEPER_OPTION_RANGE',
      `clock.now() must return whole milliseconds ≥ 0, got ${received(now)}. Round what your clock tells.`,
      { option: 'clock' },
    );
  }

  #write({ rule, subject }: BatchItem, found: Entry | undefined, cell: Cell | undefined, now: number): void {
    // An item before this one may have driven the entry out.
    let entry = found === undefined || found.position < 0 ? undefined : found;
    if (cell === undefined) {
      if (entry !== undefined) this.#remove(entry);
      return;
    }
    if (entry === undefined) {
      this.#makeRoom(now);
      entry = newEntry(rule.scope, subject.hash, cell);
      this.#table.add(entry);
    }
    const newBlock = cell.block !== entry.cell.block || entry.blockNumber === 0;
    entry.cell = cell;
    entry.until = cellForgettableAt(cell);
    this.#table.fills.set(entry.position, cell, rule, entry.until, now);
    if (newBlock && isStanding(cell.block, now)) this.#blocks.add(entry, partsOf(subject, entry));
    this.#place(entry, now);
  }

  /** Where the entry belongs at `now`, when it is not over: with the blocked ones or not, and when to look at it again. */
  #place(entry: Entry, now: number): void {
    const block = standingBlock(entry.cell, now);
    if (block === undefined) {
      this.#blocks.remove(entry);
      this.#table.markOpen(entry);
      this.#wheel.file(entry, entry.until);
    } else {
      this.#table.markBlocked(entry);
      this.#wheel.file(entry, block.until ?? Infinity);
    }
  }

  /** Looks at up to `most` entries that the wheel has put away. Answers whether it removed one, and stops there if told to. */
  #sweep(most: number, now: number, stopAtFirst = false): boolean {
    for (let i = 0; i < most; i += 1) {
      const entry = this.#wheel.take();
      if (entry === undefined) return false;
      if (entry.until > now) {
        this.#place(entry, now);
      } else {
        this.#remove(entry);
        if (stopAtFirst) return true;
      }
    }
    return false;
  }

  #makeRoom(now: number): void {
    if (this.#table.size < this.#maxKeys || this.#sweep(SWEEP_FULL, now, true)) return;
    const victim = pickVictim(this.#table, now);
    if (victim !== undefined) this.#remove(victim);
  }

  #remove(entry: Entry): void {
    this.#wheel.remove(entry);
    this.#blocks.remove(entry);
    this.#table.remove(entry);
  }
}

/**
 * Under which hashes a block is found. An operator may have blocked by hash, and then the parts are not known: those of
 * the block that stood before hold, or the hash itself, which is that of the only part if there is just one.
 */
function partsOf(subject: HashedSubject, { parts }: Entry): readonly string[] {
  const { partHashes } = subject;
  if (partHashes.length > 0) return partHashes;
  return parts.length > 0 ? parts : [subject.hash];
}

function checkClock(clock: unknown): Clock {
  if (typeof clock === 'object' && clock !== null && 'now' in clock && typeof clock.now === 'function') {
    return clock as Clock;
  }
  throw typeError(
    'ERR_LIMITKEEPER_OPTION_TYPE',
    `clock must be an object with a function now() that returns milliseconds, got ${received(clock)}.`,
    { option: 'clock' },
  );
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
