import type { Cell } from '../../src/core/cell.js';
import type { Check } from '../../src/core/check.js';
import type { Clock } from '../../src/core/clock.js';
import { decideCells } from '../../src/core/decide-cells.js';
import type { SyncStore } from '../../src/core/store.js';

type Keeping = 'as they are' | 'as JSON' | 'only while they are good';

/** `decide` with nothing around it but a map of cells that never forgets: to see its answers alone. */
export class DecideStore implements SyncStore {
  readonly cells = new Map<string, Cell>();
  readonly #clock: Clock;
  readonly #keeping: Keeping;

  constructor(clock: Clock, keeping: Keeping = 'as they are') {
    this.#clock = clock;
    this.#keeping = keeping;
  }

  decide(checks: readonly Check[]): number {
    const now = this.#clock.now();
    const names = checks.map(({ rule, subject }) => `${subject.hash} ${rule.scope}`);
    const loaded = names.map(name => this.#load(name, now));
    const cells = decideCells(checks, loaded, now);
    names.forEach((name, i) => {
      const cell = cells[i];
      if (cell === undefined) this.cells.delete(name);
      else this.cells.set(name, cell);
    });
    return now;
  }

  inspect(): [] {
    return [];
  }

  reset(): [] {
    return [];
  }

  blocked(): { blocks: [] } {
    return { blocks: [] };
  }

  clear(): void {
    this.cells.clear();
  }

  close(): void {}

  #load(name: string, now: number): Cell | undefined {
    const cell = this.cells.get(name);
    if (cell === undefined) return undefined;
    if (this.#keeping === 'as JSON') return JSON.parse(JSON.stringify(cell)) as Cell;
    if (this.#keeping === 'as they are') return cell;
    const counters = cell.counters.filter(counter => counter.until > now);
    return { ...cell, counters };
  }
}
