import { warnOnce } from '../core/warn-once.js';
import type { LimiterRun, RequestState, RuleRun } from './request-state.js';

/** Requests that met several limiters and showed nothing: how the application is put together is known by then. */
const ENOUGH = 1000;

/** Notices two limiters that count one request twice, in one and the same counter. One for each instance. */
export class TwiceWatch {
  #left = ENOUGH;

  /** Call it when a limiter has decided. */
  observe(run: LimiterRun, state: RequestState): void {
    if (state.runs.size === 1 || this.#left === 0) return;
    this.#left -= 1;
    for (const other of state.runs.values()) {
      if (other === run || other.engine.store !== run.engine.store) continue;
      if (!run.rules.some(rule => other.rules.some(theirs => isSameCounter(rule, theirs)))) continue;
      warnOnce('LIMITKEEPER_SCOPE_COUNTED_TWICE');
      this.#left = 0;
      return;
    }
  }
}

function isSameCounter({ item: a }: RuleRun, { item: b }: RuleRun): boolean {
  return (
    a.rule.scope === b.rule.scope &&
    a.rule.windowMs === b.rule.windowMs &&
    a.rule.algorithm === b.rule.algorithm &&
    a.subject.hash === b.subject.hash
  );
}
