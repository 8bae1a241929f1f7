import { oneOf } from './validate.js';
import type { Decision, RuleReading } from './decision.js';
import { received, typeError } from './errors.js';
import type { LimitkeeperError } from './errors.js';
import { isPromise } from './maybe-promise.js';

export type FailMode = 'open' | 'closed' | 'local';

/** What listeners are told. Subjects appear as their hashes only. */
export interface LimiterEvents {
  /** A request passed. `subjectHash` is that of the binding rule; both are `null` where no enforced rule took part. */
  allowed: {
    readonly scope: string | null;
    readonly subjectHash: string | null;
    readonly decision: Decision;
  };
  /** A request was refused, by a rule or, with fail mode `closed`, because the store failed. */
  refused: {
    readonly scope: string | null;
    readonly subjectHash: string | null;
    readonly decision: Decision;
  };
  /** A rule in shadow mode would have refused. */
  'shadow-refused': RuleEvent;
  /** An automatic block started. */
  blocked: RuleEvent;
  /** A call to the store failed or was late. `dropped`: it was an effect (a settle, a refund), which is lost. */
  'store-error': { readonly error: LimitkeeperError; readonly dropped: boolean };
  /** The fail mode took over, after a healthy time. */
  degraded: { readonly failMode: FailMode; readonly error: LimitkeeperError };
  /** The store decides again. */
  recovered: Readonly<Record<string, never>>;
  /** A listener or an `outcome` callback threw (or, async, rejected). */
  error: { readonly error: unknown; readonly source: 'listener' | 'outcome' };
}

export interface RuleEvent {
  readonly scope: string;
  readonly subjectHash: string;
  readonly reading: RuleReading;
  readonly at: number;
}

export type EventName = keyof LimiterEvents;

const EVENT_NAMES = [
  'allowed',
  'refused',
  'shadow-refused',
  'blocked',
  'store-error',
  'degraded',
  'recovered',
  'error',
] as const satisfies readonly EventName[];

/** What it returns is ignored, but it may be async: what it rejects with is reported like a throw. */
export type Listener<N extends EventName> = (event: LimiterEvents[N]) => unknown;

/** Listeners by event name. Unlike an EventEmitter it never throws: a listener that does is reported as `error`. */
export class Events {
  readonly #listeners = new Map<EventName, Set<(event: never) => unknown>>();

  /**
   * @returns a function that ends the subscription.
   * @throws TypeError `ERR_LIMITKEEPER_OPTION_TYPE` for an unknown event: its listener would wait for ever.
   */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    oneOf(name, 'on(event, listener): event', EVENT_NAMES);
    if (typeof (listener as unknown) !== 'function') {
      throw typeError(
        'ERR_LIMITKEEPER_OPTION_TYPE',
        `on(event, listener): listener must be a function, got ${received(listener)}.`,
      );
    }
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    // A wrapper of its own for each call: the same function may listen twice, and each `off` ends its own.
    const entry: Listener<N> = event => listener(event);
    listeners.add(entry);
    return () => {
      listeners.delete(entry);
      if (listeners.size === 0 && this.#listeners.get(name) === listeners) this.#listeners.delete(name);
    };
  }

  /** Nobody listens to anything. */
  get isSilent(): boolean {
    return this.#listeners.size === 0;
  }

  /** Is anybody listening? Events that cost something to make are made only then. */
  has(name: EventName): boolean {
    return this.#listeners.has(name);
  }

  emit<N extends EventName>(name: N, event: LimiterEvents[N]): void {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined) return;
    for (const listener of [...listeners]) {
      // A listener before this one may have ended it.
      if (!listeners.has(listener)) continue;
      try {
        const result = (listener as Listener<N>)(event);
        if (isPromise(result)) {
          result.then(undefined, (error: unknown) => {
            this.#listenerFailed(name, error);
          });
        }
      } catch (error) {
        this.#listenerFailed(name, error);
      }
    }
  }

  #listenerFailed(name: EventName, error: unknown): void {
    // An error of an error listener has nobody left to hear it.
    if (name !== 'error') this.emit('error', { error, source: 'listener' });
  }
}
