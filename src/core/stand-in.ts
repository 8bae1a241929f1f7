import type { Check } from './check.js';
import { processWide } from './process-wide.js';
import type { Store, SyncStore } from './store.js';

/** One for each store: limiters that share a store share its stand-in, too. */
const standIns = processWide('stand-ins.v2', () => new WeakMap<Store, SyncStore>());

/** The memory store of this process that decides while the real one is away (`failMode: 'local'`); made when first needed. */
export class StandIn {
  readonly #store: Store;
  readonly #make: () => SyncStore;

  constructor(store: Store, make: () => SyncStore) {
    this.#store = store;
    this.#make = make;
  }

  decide(checks: readonly Check[]): number {
    let local = standIns.get(this.#store);
    if (local === undefined) {
      local = this.#make();
      standIns.set(this.#store, local);
    }
    return local.decide(checks);
  }

  /** What was forgiven in the real store must not come back with the next outage. */
  follow(checks: readonly Check[]): void {
    const local = standIns.get(this.#store);
    if (local === undefined) return;
    const forgiving = checks.filter(
      ({ operation: { type } }) => type === 'forgive' || type === 'reset' || type === 'unblock',
    );
    if (forgiving.length > 0) local.decide(forgiving.map(check => check.with(check.operation)));
  }

  async forget(subjectHash: string, scope: string): Promise<void> {
    await standIns.get(this.#store)?.reset(subjectHash, scope);
  }
}
