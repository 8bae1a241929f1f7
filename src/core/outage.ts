import { errorText } from './error-text.js';
import type { LimitkeeperError } from './errors.js';
import type { FailMode } from './events.js';
import { processWide } from './process-wide.js';
import type { Store } from './store.js';
import { emitWarning } from './warning.js';

const CODE = 'LIMITKEEPER_STORE_AWAY';
/** Between two warnings of one store. */
const QUIET_MS = 60_000;
/** Scopes kept for each fail mode: limiters may be made without end, with scopes of their own. */
const MOST_KEPT = 50;
const MOST_NAMED = 8;

const MEANWHILE: Record<FailMode, string> = {
  open: 'requests pass uncounted',
  closed: 'requests are refused with 503',
  local: 'each process counts for itself',
};

/** One for each store, with its limiters together: what one of them has warned of, the others need not repeat. */
const outages = processWide('outages.v1', () => new WeakMap<Store, Outage>());

export function outageOf(store: Store): Outage {
  const known = outages.get(store);
  if (known !== undefined) return known;
  const made = new Outage();
  outages.set(store, made);
  return made;
}

/**
 * Tells the process that a store is away. Without it a wrong password would be silent: requests are answered, and the error
 * of the user's client is heard by the store's own listener. It is told also where somebody listens to the limiter's events.
 */
export class Outage {
  readonly #scopes = new Map<FailMode, Set<string>>();
  /** When it was warned last, by `performance.now()`. */
  #warnedAt = -Infinity;
  /** Has the outage that lasts been told, and with what the client says of it? */
  #told: 'no' | 'without cause' | 'whole' = 'no';

  /** @param scopes that a limiter of this store counts in */
  concerns(scopes: readonly string[], failMode: FailMode): void {
    const known = this.#scopes.get(failMode) ?? new Set();
    this.#scopes.set(failMode, known);
    for (const scope of scopes) if (known.size < MOST_KEPT) known.add(scope);
  }

  /** A call has failed. */
  failed(error: LimitkeeperError): void {
    const hasCause = error.cause !== undefined;
    if (this.#told === 'whole' || (this.#told === 'without cause' && !hasCause)) return;
    const now = performance.now();
    if (now - this.#warnedAt < QUIET_MS) return;
    this.#warnedAt = now;
    this.#told = hasCause ? 'whole' : 'without cause';
    emitWarning(CODE, `${sentence(errorText(error))} Until the store answers again, ${this.#meanwhile()}.`);
  }

  /** The store has answered one of its limiters. */
  ended(): void {
    this.#told = 'no';
  }

  #meanwhile(): string {
    return [...this.#scopes]
      .map(([mode, scopes]) => `${MEANWHILE[mode]} (failMode '${mode}': ${listed(scopes)})`)
      .join('; ');
  }
}

function listed(scopes: ReadonlySet<string>): string {
  const all = [...scopes];
  const more = all.length - MOST_NAMED;
  return all.slice(0, MOST_NAMED).join(', ') + (more > 0 ? ` and ${String(more)} more` : '');
}

const sentence = (text: string): string =>
  text.slice(0, 1).toUpperCase() + text.slice(1).replace(/[.:]?$/, '.');
