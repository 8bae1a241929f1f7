import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import type { Clock } from '../../src/core/clock.js';
import type { Check } from '../../src/core/check.js';
import type { BlockPage, Store, StoredCell } from '../../src/core/store.js';
import { pause } from './http.js';

type Behaviour = 'answer' | 'hang' | 'reject' | 'throw';

/**
 * A store as a user may write one: it counts where another does, and answers later, never, or with an error. It notes
 * which operations it was asked for, call by call.
 */
export class RemoteStore implements Store {
  behaviour: Behaviour = 'answer';
  /** Calls to `decide`, each as the types of its operations, e.g. `['consume reserve', 'settle']`. */
  readonly asked: string[] = [];
  readonly inner: Store;
  readonly #delay: () => Promise<unknown>;

  constructor(inner: Store = new MemoryStore(), delay: number | (() => Promise<unknown>) = 5) {
    this.inner = inner;
    this.#delay = typeof delay === 'number' ? () => pause(delay) : delay;
  }

  decide(checks: readonly Check[]): Promise<number> {
    this.asked.push(checks.map(({ operation }) => operation.type).join(' '));
    if (this.behaviour === 'throw') throw new Error('no connection');
    if (this.behaviour === 'hang') return new Promise(() => {});
    if (this.behaviour === 'reject') return this.#delay().then(() => Promise.reject(new Error('read-only')));
    return this.#delay().then(() => this.inner.decide(checks));
  }

  async inspect(subjectHash: string): Promise<StoredCell[]> {
    return this.inner.inspect(subjectHash);
  }

  async reset(subjectHash: string, scope?: string): Promise<StoredCell[]> {
    return this.inner.reset(subjectHash, scope);
  }

  async blocked(query = {}): Promise<BlockPage> {
    return this.inner.blocked(query);
  }

  async clear(scopes?: readonly string[]): Promise<void> {
    await this.inner.clear(scopes);
  }

  async close(): Promise<void> {
    await this.inner.close();
  }
}

/** The two kinds of store that a response meets: one that answers at once, and one that answers later. */
export const STORES: readonly (readonly [name: string, make: (clock?: Clock) => Store])[] = [
  ['a store that answers at once', clock => new MemoryStore(clock === undefined ? {} : { clock })],
  [
    'a store that answers later',
    clock => new RemoteStore(new MemoryStore(clock === undefined ? {} : { clock })),
  ],
];
