import { isStanding } from '../core/block.js';
import { cellForgettableAt } from '../core/cell.js';
import type { Cell } from '../core/cell.js';
import { decide } from '../core/decide.js';
import { operatorCall, WHOLE_STORE_DEADLINE_MS } from '../core/operator-call.js';
import type { Batch, BatchItem } from '../core/operation.js';
import type {
  Backend,
  BatchResult,
  BlockEntry,
  BlockPage,
  BlockQuery,
  CellKey,
  Store,
  StoredCell,
  Write,
} from '../core/store.js';
import { checkBlockQuery } from './block-query.js';
import { blockEntry, liveCells, standingBlock } from './live-cell.js';
import { readCell } from './read-cell.js';

/** `backendStore` of the face. */
export function backendStore(backend: Backend): Store {
  return new BackendStore(backend);
}

class BackendStore implements Store {
  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  apply(batch: Batch, deadlineMs?: number): Promise<BatchResult> {
    const keys = batch.map(({ rule, subject }) => ({ scope: rule.scope, subjectHash: subject.hash }));
    return this.#backend.transact(
      keys,
      (loaded, now) => {
        const cells = batch.map((_, i) => readCell(loaded[i]));
        const { readings, cells: decided, blockStarted } = decide(batch, cells, now);
        const writes = batch.flatMap((item, i) =>
          decided[i] === cells[i] ? [] : [writeOf(item, cells[i], decided[i], now)],
        );
        return { writes, result: { at: now, readings, blockStarted } };
      },
      deadlineMs,
    );
  }

  inspect(subjectHash: string): Promise<StoredCell[]> {
    return operatorCall(this, 'inspect', () => this.#inspect(subjectHash));
  }

  reset(subjectHash: string, scope?: string): Promise<StoredCell[]> {
    return operatorCall(this, 'reset', () => this.#reset(subjectHash, scope));
  }

  blocked(query: BlockQuery = {}): Promise<BlockPage> {
    return operatorCall(this, 'blocked', () => this.#blocked(query));
  }

  clear(scopes?: readonly string[]): Promise<void> {
    return operatorCall(this, 'clear', () => this.#backend.clear(scopes), WHOLE_STORE_DEADLINE_MS);
  }

  close(): Promise<void> {
    return operatorCall(this, 'close', () => this.#backend.close());
  }

  async #inspect(subjectHash: string): Promise<StoredCell[]> {
    const [cells, now] = await Promise.all([this.#backend.list(subjectHash), this.#backend.now()]);
    return liveCells(readable(cells), now);
  }

  async #reset(subjectHash: string, scope?: string): Promise<StoredCell[]> {
    const scopes =
      scope === undefined ? (await this.#backend.list(subjectHash)).map(cell => cell.scope) : [scope];
    if (scopes.length === 0) return [];
    const keys: CellKey[] = scopes.map(name => ({ scope: name, subjectHash }));
    return this.#backend.transact(keys, (loaded, now) => {
      const stored = keys.flatMap((key, i) => {
        const cell = readCell(loaded[i]);
        return cell === undefined ? [] : [{ scope: key.scope, cell }];
      });
      return {
        writes: keys.map(key => ({ ...key, cell: undefined, forgettableAt: now })),
        result: liveCells(stored, now),
      };
    });
  }

  async #blocked(query: BlockQuery): Promise<BlockPage> {
    const listBlocked = this.#backend.listBlocked?.bind(this.#backend);
    if (listBlocked === undefined) return { blocks: [], unlisted: true };
    const { cursor: from, ...checked } = checkBlockQuery(query);
    const blocks: BlockEntry[] = [];
    let cursor = from;
    // A page of which nothing still stands says nothing: the next one is asked for in its place.
    do {
      const page = await listBlocked({
        ...checked,
        ...(cursor === undefined ? {} : { cursor }),
      });
      const now = await this.#backend.now();
      for (const { scope, subjectHash, cell } of page.cells) {
        const block = standingBlock(readCell(cell), now);
        if (block !== undefined) blocks.push(blockEntry(subjectHash, scope, block));
      }
      cursor = page.cursor;
    } while (blocks.length === 0 && cursor !== undefined);
    return { blocks, ...(cursor === undefined ? {} : { cursor }) };
  }
}

function readable(cells: readonly StoredCell[]): StoredCell[] {
  return cells.flatMap(({ scope, cell: stored }) => {
    const cell = readCell(stored);
    return cell === undefined ? [] : [{ scope, cell }];
  });
}

function writeOf(
  { rule, subject }: BatchItem,
  before: Cell | undefined,
  cell: Cell | undefined,
  now: number,
): Write {
  const key = { scope: rule.scope, subjectHash: subject.hash };
  if (cell === undefined) return { ...key, cell, forgettableAt: now };
  const write = { ...key, cell, forgettableAt: cellForgettableAt(cell) };
  // Worked out only when a block begins, which is rare: it costs a hash for each part.
  if (!isStanding(cell.block, now) || cell.block === before?.block) return write;
  const { partHashes } = subject;
  if (partHashes.length > 0) return { ...write, partHashes };
  // Blocked by hash, parts unknown: those of the block that stood before hold, else the hash is that of the only part.
  return isStanding(before?.block, now) ? write : { ...write, partHashes: [subject.hash] };
}
