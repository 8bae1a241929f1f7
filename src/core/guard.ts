import type { AsyncResource } from 'node:async_hooks';
import { isBatchResult } from './batch-result.js';
import { Breaker } from './breaker.js';
import { nodeAsyncHooks } from './builtin.js';
import { Deadlines, Pending } from './deadline.js';
import type { LimitkeeperError } from './errors.js';
import { isPromise } from './maybe-promise.js';
import type { MaybePromise } from './maybe-promise.js';
import type { Batch } from './operation.js';
import { processWide } from './process-wide.js';
import { noResult, storeFailure, suspended, tooLate } from './store-failure.js';
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
  /** Of the request, for its listeners: the timer that finds a call late runs in another's. */
  readonly context: AsyncResource;

  constructor(
    batch: Batch,
    conclude: Conclude<unknown>,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
    context: AsyncResource,
  ) {
    super();
    this.batch = batch;
    this.conclude = conclude;
    this.resolve = resolve;
    this.reject = reject;
    this.context = context;
  }
}

/** One breaker per store, shared by all its limiters: what one of them learns, the others need not pay for again. */
const breakers = processWide('breakers.v3', () => new WeakMap<Store, Breaker>());

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
      const answer = this.#fail(tooLate(store, timeoutMs, 'option storeTimeoutMs'));
      call.context.runInAsyncScope(end, undefined, call, answer);
    });
    this.#breaker = breakers.get(store) ?? new Breaker();
    breakers.set(store, this.#breaker);
  }

  /** Answers what `conclude` makes of the store's answer: at once where the store answers at once. */
  run<T>(batch: Batch, conclude: Conclude<T>): MaybePromise<T> {
    const now = performance.now();
    if (!this.#breaker.allows(now))
      return conclude({ ok: false, error: suspended(this.#breaker.last) }, batch);
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
    const { AsyncResource } = nodeAsyncHooks();
    return new Promise((resolve, reject) => {
      const context = new AsyncResource('limitkeeper.call');
      const call = new Call(batch, conclude, resolve as (value: unknown) => void, reject, context);
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
    const error = storeFailure(this.#store, cause);
    this.#breaker.failed(performance.now(), error);
    return { ok: false, error };
  }
}

function end(call: Call, answer: Answer): void {
  try {
    call.resolve(call.conclude(answer, call.batch));
  } catch (error) {
    call.reject(error);
  }
}
