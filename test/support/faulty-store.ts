import type { Check } from '../../src/core/check.js';
import type { BlockPage, BlockQuery, Store, StoredCell } from '../../src/core/store.js';

/**
 * What goes wrong with the next calls: `throws` at once, `rejects` later, `hangs` for ever (until {@link FaultyStore.thaw}),
 * answers only after `slowMs`, or answers (and leaves in the checks) what a store must not.
 */
export type Fault =
  | 'throws'
  | 'rejects'
  | 'hangs'
  | { readonly slowMs: number }
  | { readonly answers: (checks: readonly Check[]) => unknown };

/** A store that fails to order: it stands before a real one, which goes on counting. */
export class FaultyStore implements Store {
  fault: Fault | undefined;
  /** Calls that reached it, whatever became of them. */
  calls = 0;
  readonly #inner: Store;
  readonly #isAsync: boolean;
  readonly #frozen: (() => void)[] = [];

  constructor(inner: Store, { isAsync = true }: { readonly isAsync?: boolean } = {}) {
    this.#inner = inner;
    this.#isAsync = isAsync;
  }

  decide(checks: readonly Check[]): number | Promise<number> {
    this.calls += 1;
    const { fault } = this;
    if (fault === undefined) return this.#isAsync ? this.#later(checks) : this.#inner.decide(checks);
    if (fault === 'throws') throw new Error('the disk is full');
    if (fault === 'rejects') return Promise.reject(new Error('connection refused'));
    if (fault === 'hangs') {
      return new Promise((resolve, reject) => {
        this.#frozen.push(() => {
          if (this.fault === 'rejects') reject(new Error('connection lost'));
          else resolve(this.#inner.decide(checks));
        });
      });
    }
    if ('answers' in fault) {
      const answer = fault.answers(checks) as number;
      return this.#isAsync ? Promise.resolve(answer) : answer;
    }
    return new Promise(resolve => setTimeout(() => resolve(this.#inner.decide(checks)), fault.slowMs));
  }

  /** Lets everything that hangs go on: it succeeds, or, where the fault is now `rejects`, fails. */
  thaw(): void {
    for (const goOn of this.#frozen.splice(0)) goOn();
  }

  inspect(subjectHash: string): StoredCell[] | Promise<StoredCell[]> {
    return this.#inner.inspect(subjectHash);
  }

  reset(subjectHash: string, scope?: string): StoredCell[] | Promise<StoredCell[]> {
    return this.#inner.reset(subjectHash, scope);
  }

  blocked(query?: BlockQuery): BlockPage | Promise<BlockPage> {
    return this.#inner.blocked(query);
  }

  clear(scopes?: readonly string[]): void | Promise<void> {
    return this.#inner.clear(scopes);
  }

  close(): void | Promise<void> {
    return this.#inner.close();
  }

  async #later(checks: readonly Check[]): Promise<number> {
    await new Promise(setImmediate);
    return this.#inner.decide(checks);
  }
}
