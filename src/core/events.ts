import type { Decision, RuleReading } from './decision.js';
import type { LimitkeeperError } from './errors.js';

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
  /** A listener or an `outcome` callback threw. */
  error: { readonly error: unknown; readonly source: 'listener' | 'outcome' };
}

export interface RuleEvent {
  readonly scope: string;
  readonly subjectHash: string;
  readonly reading: RuleReading;
  readonly at: number;
}

export type EventName = keyof LimiterEvents;
export type Listener<N extends EventName> = (event: LimiterEvents[N]) => void;

/** Listeners by event name. Unlike an EventEmitter it never throws: a listener that does is reported as `error`. */
export class Events {
  readonly #listeners = new Map<EventName, Set<(event: never) => void>>();

  /** @returns a function that ends the subscription. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    // A wrapper of its own for each call: the same function may listen twice, and each `off` ends its own.
    const entry: Listener<N> = event => {
      listener(event);
    };
    listeners.add(entry);
    return () => {
      listeners.delete(entry);
      if (listeners.size === 0 && this.#listeners.get(name) === listeners) this.#listeners.delete(name);
    };
  }

  /** Is anybody listening? Events that cost something to make are made only then. */
  has(name: EventName): boolean {
    return this.#listeners.has(name);
  }

  emit<N extends EventName>(name: N, event: LimiterEvents[N]): void {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined) return;
    for (const listener of [...listeners]) {
      try {
        (listener as Listener<N>)(event);
      } catch (error) {
        // An error of an error listener has nobody left to hear it.
        if (name !== 'error') this.emit('error', { error, source: 'listener' });
      }
    }
  }
}
