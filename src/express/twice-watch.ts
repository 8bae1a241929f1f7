import type { Check } from '../core/check.js';
import { warnOnce } from '../core/warn-once.js';
import type { LimiterRun, RequestState } from './request-state.js';

/** Requests that met several limiters and showed nothing: how the application is put together is known by then. */
const ENOUGH = 1000;

/** Notices two limiters that count one request twice, in one and the same counter. One for each instance. */
export class TwiceWatch {
  #left = ENOUGH;

  /** Call it when a limiter has decided. */
  observe(run: LimiterRun, state: RequestState): void {
    if (state.runs.length === 1 || this.#left === 0) return;
    this.#left -= 1;
    for (const other of state.runs) {
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
