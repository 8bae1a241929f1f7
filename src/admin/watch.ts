import { performance } from 'node:perf_hooks';
import type { Decision } from '../core/decision.js';
import type { FailMode } from '../core/events.js';
import type { Limiter } from '../core/limiter.js';
import type { EventHub } from './event-hub.js';
import type { ManagedScopes } from './scopes.js';
import { requestCounts } from './totals.js';

/**
 * Listens to the limiters: counts for `GET /scopes`, and tells the live stream. A store that serves several limiters and is
 * away is reported by each of them.
 */
export class Watch {
  /** Of all limiters together. */
  readonly requests = requestCounts();
  readonly #scopes: ManagedScopes;
  readonly #hub: EventHub;
  readonly #degraded = new Map<Limiter, FailMode>();
  readonly #offs: (() => void)[] = [];

  constructor(limiters: readonly Limiter[], scopes: ManagedScopes, hub: EventHub) {
    this.#scopes = scopes;
    this.#hub = hub;
    for (const limiter of limiters) this.#listen(limiter);
  }

  /** The fail mode that decides in place of the store just now, if one does. */
  degraded(limiter: Limiter): FailMode | undefined {
    return this.#degraded.get(limiter);
  }

  /** Listens no more. */
  end(): void {
    for (const off of this.#offs.splice(0)) off();
  }

  #listen(limiter: Limiter): void {
    const hub = this.#hub;
    const enforces = limiter.entries.some(({ template }) => template.mode === 'enforce');
    this.#offs.push(
      limiter.on('allowed', ({ decision }) => {
        this.#count(decision, enforces);
      }),
      limiter.on('refused', ({ scope, subjectHash, decision }) => {
        this.#count(decision, enforces);
        const { at, reason, retryAfterMs } = decision;
        hub.tell({ type: 'refused', at, scope, subjectHash, reason, retryAfterMs });
      }),
      limiter.on('shadow-refused', ({ scope, subjectHash, reading: { reason, retryAfterMs }, at }) => {
        hub.tell({ type: 'shadow-refused', at, scope, subjectHash, reason, retryAfterMs });
      }),
      limiter.on('blocked', ({ scope, subjectHash, reading: { retryAfterMs }, at }) => {
        const counts = this.#scopes.find(scope)?.counts;
        if (counts !== undefined) counts.blocked += 1;
        hub.tell({ type: 'blocked', at, scope, subjectHash, retryAfterMs, manual: false });
      }),
      limiter.on('store-error', ({ error }) => {
        for (const scope of limiter.scopes) {
          const counts = this.#scopes.find(scope)?.counts;
          if (counts !== undefined) counts.storeErrors += 1;
        }
        hub.tell({ type: 'store-error', at: Date.now(), scopes: limiter.scopes, code: error.code });
      }),
      limiter.on('degraded', ({ failMode }) => {
        this.#degraded.set(limiter, failMode);
        hub.tell({ type: 'degraded', at: Date.now(), scopes: limiter.scopes, failMode });
      }),
      limiter.on('recovered', () => {
        this.#degraded.delete(limiter);
        hub.tell({ type: 'recovered', at: Date.now(), scopes: limiter.scopes });
      }),
    );
  }

  /**
   * The request once, where an enforced rule (or in its place the fail mode) decided it; then the rules. Of a refused request
   * only the rules that refused are counted: the others were not charged, and let nobody pass.
   */
  #count({ allowed, scope: binding, degraded, readings }: Decision, enforces: boolean): void {
    const now = performance.now();
    if (binding !== null || (degraded !== undefined && enforces)) {
      this.requests.add(allowed ? 'allowed' : 'refused', now);
    }
    for (const reading of readings) {
      const verdicts = this.#scopes.find(reading.scope)?.counts.verdicts;
      if (reading.allowed) {
        if (allowed) verdicts?.add('allowed', now);
      } else {
        verdicts?.add(reading.shadow ? 'shadowRefused' : 'refused', now);
      }
    }
  }
}
