import type { Cell } from '../../src/core/cell.js';
import type { Clock } from '../../src/core/clock.js';
import type { Backend, BlockQuery, CellKey, StoredCell, Transaction } from '../../src/core/store.js';

interface Row extends CellKey {
  json: string;
  forgettableAt: number;
  parts: readonly string[];
  blocked: boolean;
}

/**
 * What a third party may write: cells as JSON, time passing between load and write, and a transaction that is repeated
 * when another one came between.
 */
export class JsonBackend implements Backend {
  /** How often `body` was called again. */
  repeats = 0;
  closed = 0;
  readonly #clock: Clock;
  readonly #rows: Map<string, Row>;

  /** @param rows where the data is: two backends over the same map are two processes on one server. */
  constructor(clock: Clock, rows = new Map<string, Row>()) {
    this.#clock = clock;
    this.#rows = rows;
  }

  async transact<T>(
    keys: readonly CellKey[],
    body: (cells: readonly (Cell | undefined)[], now: number) => Transaction<T>,
  ): Promise<T> {
    for (;;) {
      const before = keys.map(key => this.#rows.get(nameOf(key)));
      const loaded = before.map(row => row?.json);
      await turn();
      const { writes, result } = body(
        loaded.map(json => (json === undefined ? undefined : (JSON.parse(json) as Cell))),
        this.#clock.now(),
      );
      await turn();
      if (keys.every((key, i) => this.#rows.get(nameOf(key)) === before[i])) {
        for (const { scope, subjectHash, cell, forgettableAt, partHashes } of writes) {
          const name = nameOf({ scope, subjectHash });
          const parts = partHashes ?? this.#rows.get(name)?.parts ?? [];
          if (cell === undefined) this.#rows.delete(name);
          else {
            const blocked = cell.block !== undefined;
            this.#rows.set(name, {
              scope,
              subjectHash,
              json: JSON.stringify(cell),
              forgettableAt,
              parts,
              blocked,
            });
          }
        }
        return result;
      }
      this.repeats += 1;
    }
  }

  async list(subjectHash: string): Promise<StoredCell[]> {
    await turn();
    return [...this.#rows.values()].filter(row => row.subjectHash === subjectHash).map(stored);
  }

  async listBlocked({ cursor = '', part, count = 100 }: BlockQuery) {
    await turn();
    const rows = [...this.#rows.entries()]
      .filter(
        ([name, row]) => row.blocked && name > cursor && (part === undefined || row.parts.includes(part)),
      )
      .sort(([a], [b]) => (a < b ? -1 : 1));
    const page = rows.slice(0, count);
    const cells = page.map(([, row]) => ({ ...stored(row), subjectHash: row.subjectHash }));
    const last = page.at(-1)?.[0];
    return rows.length > count && last !== undefined ? { cells, cursor: last } : { cells };
  }

  now(): number {
    return this.#clock.now();
  }

  async clear(scopes?: readonly string[]): Promise<void> {
    await turn();
    for (const [name, { scope }] of this.#rows) {
      if (scopes === undefined || scopes.includes(scope)) this.#rows.delete(name);
    }
  }

  async close(): Promise<void> {
    this.closed += 1;
  }

  /** Damages what is stored, as another program might. */
  overwrite(key: CellKey, json: string): void {
    this.#rows.set(nameOf(key), { ...key, json, forgettableAt: Infinity, parts: [], blocked: true });
  }
}

const nameOf = ({ scope, subjectHash }: CellKey): string => `${subjectHash} ${scope}`;

const stored = ({ scope, json }: Row): StoredCell => ({ scope, cell: JSON.parse(json) as Cell });

/** Lets everything else that is waiting go first. */
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));
