import type { Batch } from './operation.js';
import { processWide } from './process-wide.js';
import type { BatchResult, Store, SyncStore } from './store.js';

/** One for each store: limiters that share a store share its stand-in, too. */
const standIns = processWide('stand-ins.v1', () => new WeakMap<Store, SyncStore>());

/** The memory store of this process that decides while the real one is away (`failMode: 'local'`); made when first needed. */
export class StandIn {
  readonly #store: Store;
  readonly #make: () => SyncStore;

  constructor(store: Store, make: () => SyncStore) {
    this.#store = store;
    this.#make = make;
  }

  apply(batch: Batch): BatchResult {
    let local = standIns.get(this.#store);
    if (local === undefined) {
      local = this.#make();
      standIns.set(this.#store, local);
    }
    return local.apply(batch);
  }

  /** What was forgiven in the real store must not come back with the next outage. */
  follow(batch: Batch): void {
    const local = standIns.get(this.#store);
    if (local === undefined) return;
    const forgiving = batch.filter(
      ({ operation: { type } }) => type === 'forgive' || type === 'reset' || type === 'unblock',
    );
    if (forgiving.length > 0) local.apply(forgiving);
  }

  async forget(subjectHash: string, scope: string): Promise<void> {
    await standIns.get(this.#store)?.reset(subjectHash, scope);
  }
}
