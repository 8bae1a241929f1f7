import type { Block } from './block.js';
import type { Cell } from './cell.js';
import type { Check } from './check.js';

/** One stored cell of a subject, for operators. */
export interface StoredCell {
  readonly scope: string;
  readonly cell: Cell;
}

/** One standing block, for operators. */
export interface BlockEntry extends Pick<Block, 'since' | 'until' | 'manual'> {
  readonly subjectHash: string;
  readonly scope: string;
}

export interface BlockPage {
  readonly blocks: readonly BlockEntry[];
  /** Pass it back for the next page; left out on the last one. */
  readonly cursor?: string;
  /** The store keeps no list of blocks: the page is empty for that reason, and says nothing of who is blocked. */
  readonly unlisted?: true;
}

export interface BlockQuery {
  /** From an earlier page. */
  readonly cursor?: string;
  /** Only blocks of subjects of which one part has this hash (`subjectHash(part, secret)`). */
  readonly part?: string;
  /** Entries a page at most, default 100. */
  readonly count?: number;
}

/**
 * Where cells live. One object serves any number of limiters; different scopes never share a counter, and the same scope
 * and subject always do.
 *
 * The store owns the clock: it reads the time once for each call, and two processes that share a store share its time.
 * A rejected or thrown error means that nothing was decided; the limiter's guard then applies the fail mode. A store
 * never retries a call that may have been counted.
 */
export interface Store {
  /**
   * Counts in this process alone, so that each of several processes admits the whole limit. Only for a warning where there
   * seem to be several.
   */
  readonly perProcess?: boolean;
  /**
   * What the connection of a store on the network last failed with, until it is well again: the `cause` of a call that had
   * no answer or could not be sent.
   */
  readonly lastError?: unknown;
  /**
   * Decides all checks atomically, as `decide` defines it, stores what changed, and leaves a reading in each. Answers its
   * time, Unix ms: a store that needs no I/O at once, others with a promise. May be called concurrently; no two checks of a
   * call share both scope and subject. A store on the network that refuses from memory what it has just refused answers at
   * once and marks the checks as `repeated`; only a call that only asks may be answered so.
   *
   * @param deadlineMs how long the caller waits for the answer, e.g. 250. What comes later is thrown away, so a store that
   * can should count nothing then. Left out: it waits.
   */
  decide(checks: readonly Check[], deadlineMs?: number): number | Promise<number>;
  /** All cells of one subject, across scopes and windows; an empty list for an unknown one. Writes nothing. */
  inspect(subjectHash: string): StoredCell[] | Promise<StoredCell[]>;
  /** Forgets a subject in one scope or in all. Answers what was removed. */
  reset(subjectHash: string, scope?: string): StoredCell[] | Promise<StoredCell[]>;
  /** Who is blocked now, paged, in no order that callers may rely on. */
  blocked(query?: BlockQuery): BlockPage | Promise<BlockPage>;
  /** Forgets every subject, in the scopes named or in all. */
  clear(scopes?: readonly string[]): void | Promise<void>;
  /** Releases what the store itself opened; a client that the user made stays open. */
  close(): void | Promise<void>;
}

/** A store that needs no I/O, and so cannot be away. */
export interface SyncStore extends Store {
  decide(checks: readonly Check[], deadlineMs?: number): number;
}

export const STORE_METHODS = [
  'decide',
  'inspect',
  'reset',
  'blocked',
  'clear',
  'close',
] as const satisfies readonly (keyof Store)[];

/** Names one cell. */
export interface CellKey {
  readonly scope: string;
  readonly subjectHash: string;
}

/** A cell to write, or `undefined` to delete. */
export interface Write extends CellKey {
  readonly cell: Cell | undefined;
  /** From this time (Unix ms) the cell may be dropped; `Infinity`: never by itself. */
  readonly forgettableAt: number;
  /**
   * For an index of blocks: the hashes of the subject's parts, given where a block begins with this write. Left out, those
   * given before hold as long as the cell has a standing block.
   */
  readonly partHashes?: readonly string[];
}

/**
 * The easy way to write a store: `backendStore(backend)` makes a full {@link Store} of it, with every algorithm and every
 * operation.
 */
export interface Backend {
  /**
   * Loads the cells of `keys`, calls `body` with them and with the backend's time, writes what it answers, and resolves
   * with its result: all as one atomic step, isolated from every other `transact` on one of these keys.
   *
   * `body` is pure and quick; it may be called again when the transaction must be repeated, with cells and time read anew.
   * It gets one cell per key, in order: plain data as it was written (or parsed from its JSON), `undefined` where there is
   * none. Cells that are past their `forgettableAt` may be passed as `undefined` or as they are: both mean the same.
   *
   * @param deadlineMs how long the caller waits, e.g. 250; left out: it waits. What would come later need not be written.
   */
  transact<T>(
    keys: readonly CellKey[],
    body: (cells: readonly (Cell | undefined)[], now: number) => Transaction<T>,
    deadlineMs?: number,
  ): Promise<T>;
  /** All stored cells of a subject, with their scopes. */
  list(subjectHash: string): Promise<readonly StoredCell[]>;
  /**
   * The cells in which a block may stand, paged as {@link Store.blocked} is; cells without a standing block are left out
   * above. Without it, the store tells nobody who is blocked (`unlisted`).
   */
  listBlocked?(
    query: BlockQuery,
  ): Promise<{ readonly cells: readonly (StoredCell & CellKey)[]; readonly cursor?: string }>;
  /** The backend's time, Unix ms. */
  now(): number | Promise<number>;
  /** Deletes the cells of every subject, in the scopes named or in all. */
  clear(scopes?: readonly string[]): Promise<void>;
  /** Releases what the backend itself opened. */
  close(): Promise<void>;
}

export interface Transaction<T> {
  readonly writes: readonly Write[];
  readonly result: T;
}
