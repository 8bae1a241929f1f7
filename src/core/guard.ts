import { isBatchResult } from './batch-result.js';
import { Breaker } from './breaker.js';
import { Deadlines, Pending } from './deadline.js';
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

/** What a caller makes of an answer. Given the batch, so that it need not be a new function for each call. */
export type Conclude<T> = (answer: Answer, batch: Batch) => T;

/** A call under way. */
class Call extends Pending {
  readonly batch: Batch;
  readonly conclude: Conclude<unknown>;
  /** Of the promise that the caller waits for: it takes what `conclude` answers. */
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;

  constructor(
    batch: Batch,
    conclude: Conclude<unknown>,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    super();
    this.batch = batch;
    this.conclude = conclude;
    this.resolve = resolve;
    this.reject = reject;
  }
}

/** One breaker per store, shared by all its limiters: what one of them learns, the others need not pay for again. */
const breakers = processWide('breakers.v2', () => new WeakMap<Store, Breaker>());

/**
 * Stands between a limiter and its store: every call is answered within the deadline (late replies are thrown away), and
 * a store that keeps failing is left alone for a while. It relies on no option of the user's client.
 */
export class Guard {
  readonly #store: Store;
  readonly #timeoutMs: number;
  readonly #breaker: Breaker;
  readonly #deadlines: Deadlines<Call>;

  constructor(store: Store, timeoutMs: number) {
    this.#store = store;
    this.#timeoutMs = timeoutMs;
    this.#deadlines = new Deadlines(timeoutMs, call => {
      end(call, this.#fail(tooLate(timeoutMs)));
    });
    this.#breaker = breakers.get(store) ?? new Breaker();
    breakers.set(store, this.#breaker);
  }

  /** Answers what `conclude` makes of the store's answer: at once where the store answers at once. */
  run<T>(batch: Batch, conclude: Conclude<T>): MaybePromise<T> {
    const now = performance.now();
    if (!this.#breaker.allows(now)) return conclude({ ok: false, error: suspended() }, batch);
    let result: BatchResult | Promise<BatchResult>;
    try {
      result = this.#store.apply(batch, this.#timeoutMs);
      // A thenable of another make may throw; a native promise goes through `resolve` as it is.
      if (isPromise(result)) result = Promise.resolve(result);
    } catch (error) {
      return conclude(this.#fail(error), batch);
    }
    return result instanceof Promise
      ? this.#wait(result, batch, now, conclude)
      : conclude(this.#check(result, batch), batch);
  }

  #wait<T>(reply: Promise<BatchResult>, batch: Batch, now: number, conclude: Conclude<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = new Call(batch, conclude, resolve as (value: unknown) => void, reject);
      this.#deadlines.watch(call, now);
      reply.then(
        result => {
          if (this.#deadlines.answered(call)) end(call, this.#check(result, batch));
        },
        (error: unknown) => {
          if (this.#deadlines.answered(call)) end(call, this.#fail(error));
        },
      );
    });
  }

  #check(result: BatchResult, batch: Batch): Answer {
    try {
      if (!isBatchResult(result, batch.length)) return this.#fail(noResult(batch.length));
      if (result.repeated === true) this.#breaker.spared();
      else this.#breaker.succeeded();
    } catch (error) {
      return this.#fail(error);
    }
    return { ok: true, result };
  }

  #fail(cause: unknown): Answer {
    this.#breaker.failed(performance.now());
    return { ok: false, error: asStoreError(cause) };
  }
}

function end(call: Call, answer: Answer): void {
  try {
    call.resolve(call.conclude(answer, call.batch));
  } catch (error) {
    call.reject(error);
  }
}

function noResult(items: number): Error {
  return new Error(`it must answer { at, readings, blockStarted } with ${String(items)} whole readings`);
}

function asStoreError(cause: unknown): LimitkeeperError {
  try {
    if (isLimitkeeperError(cause)) return cause;
    const text = hasMessage(cause) ? cause.message : 'it threw something that is no Error';
    return storeError('ERR_LIMITKEEPER_STORE', `the store failed: ${text}`, { cause });
  } catch {
    return storeError('ERR_LIMITKEEPER_STORE', 'the store failed with something that cannot be read.');
  }
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
