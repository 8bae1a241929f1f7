import { isStanding } from '../core/block.js';
import { cellForgettableAt } from '../core/cell.js';
import type { Check } from '../core/check.js';
import type { Cell } from '../core/cell.js';
import { decideCells } from '../core/decide-cells.js';
import { operatorCall, WHOLE_STORE_DEADLINE_MS } from '../core/operator-call.js';
import type {
  Backend,
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

  async decide(checks: readonly Check[], deadlineMs?: number): Promise<number> {
    const keys = checks.map(({ rule, subject }) => ({ scope: rule.scope, subjectHash: subject.hash }));
    const { decided, at } = await this.#backend.transact(
      keys,
      (loaded, now) => {
        // Copies: a transaction may be repeated, and what is answered too late must not reach the caller's.
        const copies = checks.map(check => check.with(check.operation));
        const before = checks.map((_, i) => readCell(loaded[i]));
        const after = decideCells(copies, before, now);
        const writes = copies.flatMap((check, i) =>
          after[i] === before[i] ? [] : [writeOf(check, before[i], after[i], now)],
        );
        return { writes, result: { decided: copies, at: now } };
      },
      deadlineMs,
    );
    decided.forEach((copy, i) => checks[i]?.take(copy, copy.blockStarted));
    return at;
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
  { rule, subject }: Check,
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
