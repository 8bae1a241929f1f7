import { CELL_VERSION } from '../../core/cell.js';
import type { Cell, Counter } from '../../core/cell.js';
import type { StoredCell } from '../../core/store.js';
import type { Caller } from './caller.js';
import { listReply } from './explain.js';
import { textOf } from './port.js';
import { INSPECT, run } from './scripts.js';
import { ALGORITHM_NAMES } from './work.js';

/** Subjects read in one call. */
const MOST_PER_CALL = 100;

/** Reads the cells of subjects, for operators. */
export class CellReader {
  readonly #caller: Caller;
  readonly #isSplit: () => boolean;

  /** @param isSplit may a call speak of one key only? */
  constructor(caller: Caller, isSplit: () => boolean) {
    this.#caller = caller;
    this.#isSplit = isSplit;
  }

  async read(hashes: readonly string[]): Promise<{ now: number; cells: Map<string, StoredCell[]> }> {
    const { port, keyOf, timeArgs } = this.#caller;
    const cells = new Map<string, StoredCell[]>();
    let now = 0;
    const step = this.#isSplit() ? 1 : MOST_PER_CALL;
    for (let i = 0; i < hashes.length; i += step) {
      const some = hashes.slice(i, i + step);
      const reply = await run(port, INSPECT, some.map(keyOf), [timeArgs[0]], listReply);
      now = Number(reply[0]);
      some.forEach((hash, n) => cells.set(hash, storedCells(reply[n + 1])));
    }
    return { now, cells };
  }
}

/** Cells in the form of `lua/shared/reply.lua`. */
export function storedCells(reply: unknown): StoredCell[] {
  return listOf(reply).map(entry => {
    const [scope, block, counters] = listOf(entry);
    const [since = 0, until = 0, manual = 0, strikes = 0] = numbers(block);
    const cell: Cell = {
      v: CELL_VERSION,
      counters: listOf(counters).map(counterOf),
      ...(listOf(block).length === 0
        ? {}
        : { block: { since, until: until < 0 ? null : until, manual: manual === 1, strikes } }),
    };
    return { scope: textOf(scope).slice(1), cell };
  });
}

function counterOf(reply: unknown): Counter {
  const [algorithm, windowMs, until, state, holds] = listOf(reply);
  return {
    algorithm: ALGORITHM_NAMES[Number(algorithm) - 1] ?? 'sliding-window',
    windowMs: Number(windowMs),
    holds: numbers(holds),
    until: Number(until),
    ...(listOf(state).length === 0 ? {} : { state: numbers(state) }),
  };
}

export const listOf = (reply: unknown): readonly unknown[] =>
  Array.isArray(reply) ? (reply as unknown[]) : [];
const numbers = (reply: unknown): number[] => listOf(reply).map(Number);
