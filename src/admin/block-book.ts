import { setImmediate as nextTurn } from 'node:timers/promises';
import { performance } from 'node:perf_hooks';
import type { BlockEntry } from '../core/store.js';
import { ask } from '../http/deadline.js';
import { cursorText, newestFirst, parseCursor } from './block-order.js';
import type { ManagedScope, ManagedScopes } from './scopes.js';

/** A block of one of the router's scopes. */
export interface ListedBlock {
  readonly entry: BlockEntry;
  readonly managed: ManagedScope;
}

export interface BlockPage {
  readonly blocks: readonly ListedBlock[];
  /** Standing blocks in the scopes asked for. */
  readonly total: number;
  /** Those of the list that come before this page. */
  readonly before: number;
  /** For the next page; left out on the last one. */
  readonly cursor?: string;
  /** Not every block was read: the stores hold more than one answer reads, and the numbers are of those that were. */
  readonly complete: boolean;
  /** How many stand in each scope that has any, whatever scope was asked for. */
  readonly counts: ReadonlyMap<ManagedScope, number>;
  /** Scopes whose store keeps no list of blocks: they are missing here. */
  readonly unlisted: readonly string[];
}

/** All that the stores list, newest first. */
interface Reading {
  readonly blocks: readonly ListedBlock[];
  readonly complete: boolean;
  readonly unlisted: ReadonlySet<ManagedScope>;
}

/** Blocks read for one list at most, those of other applications in a shared store among them. */
const MOST_READ = 50_000;
const PAGE = 500;
/** A list that is not read whole by then is answered as far as it is known. */
const LONGEST_MS = 4000;
/** Lists that are read so quickly are read anew for each request. */
const QUICK_MS = 25;
/** Of the time at most one part in this many goes into reading lists, however many ask. */
const REST = 10;

/**
 * Who is blocked in the router's scopes. Stores list blocks in an order of their own and tell no number; so that there is
 * one order (newest first) and a true count on every store, their lists are read whole and sorted here. The cost is
 * bounded: 50,000 blocks, four seconds, one reading at a time for everybody who asks, and a reading that took long is good
 * for ten times as long as it took.
 */
export class BlockBook {
  readonly #scopes: ManagedScopes;
  #latest: Promise<Reading> | undefined;

  constructor(scopes: ManagedScopes) {
    this.#scopes = scopes;
  }

  /** An operator has changed something: what was read before is not shown any more. */
  outdated(): void {
    this.#latest = undefined;
  }

  /**
   * One page, in the scope named or in all.
   *
   * @throws Refusal 404 for an unknown scope, 422 for a cursor from elsewhere, 503 where a store does not answer.
   */
  async page(count: number, cursor: string | undefined, scope: string | undefined): Promise<BlockPage> {
    const only = scope === undefined ? undefined : this.#scopes.get(scope);
    const after = cursor === undefined ? undefined : parseCursor(cursor);
    const { blocks: all, complete, unlisted } = await this.#read();
    const wanted = only === undefined ? all : all.filter(({ managed }) => managed === only);
    const before = after === undefined ? 0 : countBefore(wanted, after);
    const blocks = wanted.slice(before, before + count);
    const last = blocks.at(-1);
    const counts = new Map<ManagedScope, number>();
    for (const { managed } of all) counts.set(managed, (counts.get(managed) ?? 0) + 1);
    return {
      blocks,
      total: wanted.length,
      before,
      ...(last === undefined || before + count >= wanted.length ? {} : { cursor: cursorText(last.entry) }),
      complete,
      counts,
      unlisted: [...unlisted]
        .filter(managed => only === undefined || managed === only)
        .map(({ scope: name }) => name),
    };
  }

  /** The subjects with a standing block whose hash begins so, `most` at most; newest first. */
  async beginningWith(prefix: string, most: number): Promise<readonly string[]> {
    const { blocks } = await this.#read();
    const hashes = blocks.map(({ entry }) => entry.subjectHash).filter(hash => hash.startsWith(prefix));
    return [...new Set(hashes)].slice(0, most);
  }

  async #read(): Promise<Reading> {
    if (this.#latest !== undefined) return this.#latest;
    const start = performance.now();
    const reading = this.#readAll(start + LONGEST_MS);
    this.#latest = reading;
    const forget = (): void => {
      if (this.#latest === reading) this.#latest = undefined;
    };
    // A failure is nobody else's answer: whoever asks next asks the store.
    reading.then(() => {
      const took = performance.now() - start;
      if (took < QUICK_MS) forget();
      else setTimeout(forget, took * REST).unref();
    }, forget);
    return reading;
  }

  async #readAll(end: number): Promise<Reading> {
    const blocks: ListedBlock[] = [];
    const unlisted = new Set<ManagedScope>();
    let complete = true;
    let read = 0;
    for (const { store, scopes } of this.#scopes.stores) {
      let cursor: string | undefined;
      do {
        if (read >= MOST_READ || performance.now() > end) {
          complete = false;
          break;
        }
        const from = cursor === undefined ? {} : { cursor };
        const page = await ask(() => store.blocked({ count: PAGE, ...from }));
        read += page.blocks.length;
        for (const entry of page.blocks) {
          const managed = scopes.get(entry.scope);
          if (managed !== undefined) blocks.push({ entry, managed });
        }
        if (page.unlisted === true) for (const managed of scopes.values()) unlisted.add(managed);
        ({ cursor } = page);
        // Requests wait for no list: a store in memory answers every page at once.
        if (cursor !== undefined) await nextTurn();
      } while (cursor !== undefined);
    }
    blocks.sort((a, b) => newestFirst(a.entry, b.entry));
    return { blocks, complete, unlisted };
  }
}

function countBefore(blocks: readonly ListedBlock[], after: Parameters<typeof newestFirst>[0]): number {
  let low = 0;
  let high = blocks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = blocks[middle];
    if (at !== undefined && newestFirst(at.entry, after) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
