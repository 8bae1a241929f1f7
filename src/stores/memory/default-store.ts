import { MemoryStore } from './memory-store.js';

const KEY = Symbol.for('limitkeeper.memory-store.v1');

/**
 * The memory store of this process, made when first asked for. Kept on `globalThis` under a `Symbol.for`, so that
 * two installed copies of the library count together: each would admit the whole limit.
 */
export function defaultMemoryStore(): MemoryStore {
  const shared = globalThis as { [KEY]?: MemoryStore };
  const existing = shared[KEY];
  if (existing !== undefined) return existing;
  const store = new MemoryStore();
  Object.defineProperty(shared, KEY, { value: store, configurable: true });
  return store;
}
