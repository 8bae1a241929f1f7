import type { Store } from '../../core/store.js';
import { FakeClock } from '../fake-clock.js';
import { algorithmClauses } from './algorithms.js';
import { batchClauses } from './batches.js';
import { blockClauses } from './blocks.js';
import { operationClauses } from './operations.js';
import { operatorClauses } from './operators.js';
import { realTimeClauses } from './real-time.js';
import type { ConformanceSupport, Need, StoreFactory, TestFunction } from './support.js';
import { START, World } from './world.js';
import type { Clause } from './world.js';

const CLAUSES: readonly Clause[] = [
  ...operationClauses,
  ...algorithmClauses,
  ...batchClauses,
  ...blockClauses,
  ...operatorClauses,
  ...realTimeClauses,
];

let runs = 0;

/**
 * Registers a test for each promise of the store contract that the store says it keeps. Each makes a store of its own and
 * closes it. Together with `replayVectors`, this is what every store of this library passes.
 *
 * @param test the test function of jest, vitest, mocha (`it`) or `node:test`; it is called with a name and an async function.
 * @param createStore makes a fresh store, see {@link StoreFactory}.
 * @param supports what the store can do; what it cannot is not tested.
 * @example
 * import { test } from 'node:test';
 * import { MemoryStore } from 'limitkeeper';
 * import { storeConformance } from 'limitkeeper/testing';
 *
 * storeConformance(test, ({ clock }) => new MemoryStore({ clock }), { clock: true });
 */
export function storeConformance(
  test: TestFunction,
  createStore: StoreFactory,
  supports: ConformanceSupport = {},
): void {
  const { clock: hasClock = true, blocked = true, parts = blocked, shared = false } = supports;
  const has: Record<Need, boolean> = { clock: hasClock, blocked, parts, shared, realTime: !hasClock };
  runs += 1;
  // Unlike in other processes, too: what a failed run left on a server must not disturb this one.
  const run = `${process.pid.toString(36)}-${Date.now().toString(36)}-${String(runs)}`;
  for (const [i, clause] of CLAUSES.entries()) {
    if (!(clause.needs ?? []).every(need => has[need])) continue;
    test(clause.promise, async () => {
      const clock = hasClock ? new FakeClock(START) : undefined;
      const stores: Store[] = [];
      const open = async (): Promise<Store> => {
        const store = await createStore({ clock, name: `conformance-${run}-${String(i)}` });
        stores.push(store);
        return store;
      };
      try {
        await clause.check(new World(await open(), clock, open));
      } finally {
        for (const store of stores) await store.close();
      }
    });
  }
}
