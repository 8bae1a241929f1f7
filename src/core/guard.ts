import { isBatchResult } from './batch-result.js';
import { Breaker } from './breaker.js';
import { Deadlines } from './deadline.js';
import { isLimitkeeperError, storeError } from './errors.js';
import type { LimitkeeperError } from './errors.js';
import { isPromise } from './maybe-promise.js';
import type { MaybePromise } from './maybe-promise.js';
import type { Batch } from './operation.js';
import { processWide } from './process-wide.js';
import type { BatchResult, Store } from './store.js';

/** What became of a call: a value in both cases, so that a refusal can never be taken for a failure, nor a failure for a refusal. */
export type Answer =
  | { readonly ok: true; readonly result: BatchResult }
  | { readonly ok: false; readonly error: LimitkeeperError };

/** One breaker per store, shared by all its limiters: what one of them learns, the others need not pay for again. */
const breakers = processWide('breakers.v1', () => new WeakMap<Store, Breaker>());

/**
 * Stands between a limiter and its store: every call is answered within the deadline (late replies are thrown away), and
 * a store that keeps failing is left alone for a while. It relies on no option of the user's client.
 */
export class Guard {
  readonly #store: Store;
  readonly #timeoutMs: number;
  readonly #breaker: Breaker;
  readonly #deadlines: Deadlines;

  constructor(store: Store, timeoutMs: number) {
    this.#store = store;
    this.#timeoutMs = timeoutMs;
    this.#deadlines = new Deadlines(timeoutMs);
    this.#breaker = breakers.get(store) ?? new Breaker();
    breakers.set(store, this.#breaker);
  }

  run(batch: Batch): MaybePromise<Answer> {
    if (!this.#breaker.allows(performance.now())) return { ok: false, error: suspended() };
    try {
      const result = this.#store.apply(batch, this.#timeoutMs);
      // A thenable of another make may throw; a native promise goes through `resolve` as it is.
      return isPromise(result) ? this.#wait(Promise.resolve(result), batch) : this.#check(result, batch);
    } catch (error) {
      return this.#fail(error);
    }
  }

  #wait(reply: Promise<BatchResult>, batch: Batch): Promise<Answer> {
    return new Promise(resolve => {
      const pending = this.#deadlines.watch(() => {
        resolve(this.#fail(tooLate(this.#timeoutMs)));
      });
      const inTime = (answer: () => Answer) => {
        if (pending.done) return;
        pending.done = true;
        resolve(answer());
      };
      reply.then(
        result => {
          inTime(() => this.#check(result, batch));
        },
        (error: unknown) => {
          inTime(() => this.#fail(error));
        },
      );
    });
  }

  #check(result: BatchResult, batch: Batch): Answer {
    if (!isBatchResult(result, batch.length)) {
      return this.#fail(
        new Error(
          `it must answer { at, readings, blockStarted } with ${String(batch.length)} whole readings`,
        ),
      );
    }
    this.#breaker.succeeded();
    return { ok: true, result };
  }

  #fail(cause: unknown): Answer {
    this.#breaker.failed(performance.now());
    return { ok: false, error: asStoreError(cause) };
  }
}

function asStoreError(cause: unknown): LimitkeeperError {
  if (isLimitkeeperError(cause)) return cause;
  const text = hasMessage(cause) ? cause.message : 'it threw something that is no Error';
  return storeError('ERR_LIMITKEEPER_STORE', `the store failed: ${text}`, { cause });
}

/** Not by the class: under Jest, say, the errors of node are of another realm. */
function hasMessage(cause: unknown): cause is { readonly message: string } {
  return (
    typeof cause === 'object' && cause !== null && 'message' in cause && typeof cause.message === 'string'
  );
}

function tooLate(timeoutMs: number): LimitkeeperError {
  return storeError(
    'ERR_LIMITKEEPER_STORE_TIMEOUT',
    `the store did not answer within ${String(timeoutMs)} ms (option storeTimeoutMs).`,
  );
}

function suspended(): LimitkeeperError {
  return storeError(
    'ERR_LIMITKEEPER_STORE_SUSPENDED',
    'the store failed several times in a row and is left alone for a second.',
  );
}
