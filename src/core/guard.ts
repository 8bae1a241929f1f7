import type { AsyncResource } from 'node:async_hooks';
import { Breaker } from './breaker.js';
import { nodeAsyncHooks } from './builtin.js';
import type { Check } from './check.js';
import { Deadlines, Pending } from './deadline.js';
import type { LimitkeeperError } from './errors.js';
import { isPromise } from './maybe-promise.js';
import type { MaybePromise } from './maybe-promise.js';
import { processWide } from './process-wide.js';
import { noResult, storeFailure, suspended, tooLate } from './store-failure.js';
import type { Store } from './store.js';

/**
 * What a caller makes of an answer, with the checks, so that it need not be a new function for each call. Two ways, so that
 * a refusal can never be taken for a failure, nor a failure for a refusal.
 */
export interface Sequel<T> {
  /** @param at the store's time */
  answered(checks: readonly Check[], at: number): T;
  /** The checks may yet be written to, by a store that answers late: they are the caller's no more. */
  failed(checks: readonly Check[], error: LimitkeeperError): T;
}

/** A call under way. */
class Call extends Pending {
  readonly checks: readonly Check[];
  readonly sequel: Sequel<unknown>;
  /** Of the promise that the caller waits for: it takes what the sequel answers. */
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Of the request, for its listeners: the timer that finds a call late runs in another's. */
  readonly context: AsyncResource;

  constructor(
    checks: readonly Check[],
    sequel: Sequel<unknown>,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
    context: AsyncResource,
  ) {
    super();
    this.checks = checks;
    this.sequel = sequel;
    this.resolve = resolve;
    this.reject = reject;
    this.context = context;
  }
}

/** One breaker per store, shared by all its limiters: what one of them learns, the others need not pay for again. */
const breakers = processWide('breakers.v4', () => new WeakMap<Store, Breaker>());

/**
 * Stands between a limiter and its store: every call is answered within the deadline (late replies are thrown away), and
 * a store that keeps failing is left alone for a while. It relies on no option of the user's client. A store that answers at
 * once meets no more of it than one comparison on either side.
 */
export class Guard {
  readonly #store: Store;
  readonly #timeoutMs: number;
  readonly #breaker: Breaker;
  /** Made with the first answer that is a promise. */
  #deadlines: Deadlines<Call> | undefined = undefined;

  constructor(store: Store, timeoutMs: number) {
    this.#store = store;
    this.#timeoutMs = timeoutMs;
    this.#breaker = breakers.get(store) ?? new Breaker();
    breakers.set(store, this.#breaker);
  }

  /** Answers what the sequel makes of the store's answer: at once where the store answers at once. */
  run<T>(checks: readonly Check[], sequel: Sequel<T>): MaybePromise<T> {
    if (!this.#breaker.isClosed && !this.#breaker.allows(performance.now()))
      return sequel.failed(checks, suspended(this.#breaker.last));
    let at: number | Promise<number>;
    try {
      at = this.#store.decide(checks, this.#timeoutMs);
      if (typeof at === 'number') {
        this.#prove(checks, at);
      } else if (isPromise(at)) {
        // A thenable of another make may throw; a native promise goes through `resolve` as it is.
        at = Promise.resolve(at);
      } else throw noResult(checks.length);
    } catch (error) {
      return sequel.failed(checks, this.#fail(error));
    }
    return typeof at === 'number' ? sequel.answered(checks, at) : this.#wait(at, checks, sequel);
  }

  #wait<T>(reply: Promise<number>, checks: readonly Check[], sequel: Sequel<T>): Promise<T> {
    const { AsyncResource } = nodeAsyncHooks();
    const deadlines = (this.#deadlines ??= this.#makeDeadlines());
    return new Promise((resolve, reject) => {
      const context = new AsyncResource('limitkeeper.call');
      const call = new Call(checks, sequel, resolve as (value: unknown) => void, reject, context);
      deadlines.watch(call, performance.now());
      reply.then(
        at => {
          if (!deadlines.answered(call)) return;
          try {
            this.#prove(checks, at);
          } catch (error) {
            failed(call, this.#fail(error));
            return;
          }
          answered(call, at);
        },
        (error: unknown) => {
          if (deadlines.answered(call)) failed(call, this.#fail(error));
        },
      );
    });
  }

  #makeDeadlines(): Deadlines<Call> {
    return new Deadlines(this.#timeoutMs, call => {
      const error = this.#fail(tooLate(this.#store, this.#timeoutMs, 'option storeTimeoutMs'));
      call.context.runInAsyncScope(failed, undefined, call, error);
    });
  }

  #prove(checks: readonly Check[], at: number): void {
    if (!Number.isSafeInteger(at)) throw noResult(checks.length);
    for (const check of checks) if (!check.isDecided) throw noResult(checks.length);
    if (checks[0]?.repeated === true) this.#breaker.spared();
    else this.#breaker.succeeded();
  }

  #fail(cause: unknown): LimitkeeperError {
    const error = storeFailure(this.#store, cause);
    this.#breaker.failed(performance.now(), error);
    return error;
  }
}

function answered(call: Call, at: number): void {
  try {
    call.resolve(call.sequel.answered(call.checks, at));
  } catch (error) {
    call.reject(error);
  }
}

function failed(call: Call, error: LimitkeeperError): void {
  try {
    call.resolve(call.sequel.failed(call.checks, error));
  } catch (thrown) {
    call.reject(thrown);
  }
}
