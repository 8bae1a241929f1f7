import type { Check } from '../core/check.js';
import type { Store } from '../core/store.js';
import { warnOnce } from '../core/warn-once.js';

/** Requests that met several limiters and showed nothing: how the application is put together is known by then. */
const ENOUGH = 1000;

/** What one limiter has counted of a request. */
interface Counted {
  readonly checks: readonly Check[];
  readonly limiter: { readonly engine: { readonly store: Store } };
}

/** Notices two limiters that count one request twice, in one and the same counter. One for each instance. */
export class TwiceWatch {
  #left = ENOUGH;

  /** Call it when a limiter has decided. @param all that the request has met, the one that has decided among them */
  observe(run: Counted, all: readonly Counted[]): void {
    if (all.length === 1 || this.#left === 0) return;
    this.#left -= 1;
    for (const other of all) {
      if (other === run || other.limiter.engine.store !== run.limiter.engine.store) continue;
      if (!run.checks.some(check => other.checks.some(theirs => isSameCounter(check, theirs)))) continue;
      warnOnce('LIMITKEEPER_SCOPE_COUNTED_TWICE');
      this.#left = 0;
      return;
    }
  }
}

function isSameCounter(a: Check, b: Check): boolean {
  return (
    a.rule.scope === b.rule.scope &&
    a.rule.windowMs === b.rule.windowMs &&
    a.rule.algorithm === b.rule.algorithm &&
    a.subject.hash === b.subject.hash
  );
}
