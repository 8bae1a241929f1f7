import { received, typeError } from '../core/errors.js';
import { chain, isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import type { Check } from '../core/check.js';
import type { Operation } from '../core/operation.js';
import { HeldEnd } from './hold-end.js';
import { asFailure } from './failure.js';
import { isRefusal } from './outcome.js';
import type { LimiterRun, RequestState } from './request-state.js';
import { charges } from './rule-run.js';
import type { RuleRun } from './rule-run.js';
import type { RequestOutcome } from './types.js';
import { standsForSocket } from './web-socket.js';
import { warnOnce } from '../core/warn-once.js';

/**
 * How a request ended. `abandoned`: the client went away before the handler answered. Whether it would have been a success
 * nobody knows, and it counts for whatever a rule counts: hanging up must make nothing free.
 */
type Ending = RequestOutcome | 'abandoned';

/**
 * Settles reservations and outcomes before the response leaves, and lets the headers say how things stand then. However many
 * limiters a response has met, its end is held once, and all of them settle side by side.
 */
export function settleBeforeEnd(run: LimiterRun): void {
  const { state, res } = run;
  // Node's own name for it, in place of the 200 of a response that stands for a socket which was let in.
  if (standsForSocket(res) && res.statusCode === 200) res.statusCode = 101;
  state.heldEnd ??= new HeldEnd(res, overlaid => {
    const sentEarly = overlaid && res.headersSent && !isRefusing(state);
    return () => {
      if (sentEarly && isRefusing(state)) warnOnce('LIMITKEEPER_HEADERS_SENT_EARLY');
      state.writeHeaders();
    };
  });
  state.heldEnd.add(
    answered => settle(run, answered ? outcomeOf(run) : 'abandoned', isRefusal(res)),
    error => {
      run.next(asFailure(error));
    },
  );
}

const isRefusing = ({ decision }: RequestState): boolean => !decision.allowed;

function outcomeOf({ limiter, req, res }: LimiterRun): RequestOutcome {
  const { outcome } = limiter.options;
  // Another limiter refused: what the request was going to be is not known.
  if (outcome === undefined || isRefusal(res)) return 'ignore';
  const report = (error: unknown): void => {
    // Without a word a login whose outcome is async, say, would be guessed at without an end.
    if (!limiter.engine.events.has('error')) warnOnce('LIMITKEEPER_OUTCOME_FAILED');
    limiter.engine.events.emit('error', { error, source: 'outcome' });
  };
  try {
    const result: unknown = outcome(req, res);
    if (result === 'success' || result === 'failure' || result === 'ignore') return result;
    if (isPromise(result)) Promise.resolve(result).catch(report);
    throw typeError(
      'ERR_LIMITKEEPER_CALLBACK',
      `outcome must return 'success', 'failure' or 'ignore', got ${isPromise(result) ? 'a promise' : received(result)}.`,
      { option: 'outcome' },
    );
  } catch (error) {
    report(error);
    return 'ignore';
  }
}

function settle(run: LimiterRun, ending: Ending, refusedElsewhere: boolean): MaybePromise<void> {
  const runs: RuleRun[] = [];
  const checks: Check[] = [];
  for (const ruleRun of run.ruleRuns) {
    const operation = lastOperation(ruleRun, run, ending, refusedElsewhere);
    // From here on it is the end that has settled, and a handler may only correct it. What was consumed it may still give back.
    if (!ruleRun.taken || ruleRun.check.operation.type !== 'consume') ruleRun.spent = true;
    if (operation === undefined) continue;
    if (charges(operation)) ruleRun.charged = true;
    runs.push(ruleRun);
    checks.push(ruleRun.check.with(operation));
  }
  if (checks.length === 0) return undefined;
  const settled = chain(run.limiter.engine.effect(checks, run.local), verdict => {
    run.settled(verdict, runs);
    // Where the store failed nothing was charged that could be corrected, also when the local one tells how things stand.
    const reached = verdict.checks.length > 0 && (verdict.degraded === undefined || run.local);
    if (reached) for (const { estimate } of runs) if (estimate) estimate.at = verdict.at;
  });
  if (isPromise(settled)) run.settling = settled;
  return settled;
}

/** What the end of a request does to one rule. */
function lastOperation(
  run: RuleRun,
  limiter: LimiterRun,
  ending: Ending,
  refusedElsewhere: boolean,
): Operation | undefined {
  const { rule, check, cost } = run;
  // In shadow mode it would have refused, and then the request would have had no end of its own.
  if (run.refused && check.shadow) return undefined;
  if (rule.resetOnSuccess && ending === 'success') return { type: 'forgive' };
  if (run.spent) return undefined;
  const actual = unitsOf(run, ending, refusedElsewhere, limiter.letGo);
  if (rule.reserve && counts(run, ending) && !refusedElsewhere && run.actual === undefined) {
    run.estimate = { units: actual, at: undefined };
  }
  if (run.taken && check.operation.type === 'reserve') {
    return { type: 'settle', at: limiter.decidedAt, held: cost, actual };
  }
  if (actual > 0) return { type: 'charge', units: actual };
  // Nothing was taken and nothing is charged: whatever the handler settles later comes on top.
  if (run.estimate !== undefined) run.estimate.at = limiter.decidedAt;
  return undefined;
}

/** Does the rule count a request that ended so? */
function counts({ rule }: RuleRun, ending: Ending): boolean {
  if (rule.count === 'all' || ending === 'abandoned') return true;
  return ending === (rule.count === 'failures' ? 'failure' : 'success');
}

/** The units that the request costs after all; those that were consumed are paid already. */
function unitsOf(run: RuleRun, ending: Ending, refusedElsewhere: boolean, letGo: boolean): number {
  const { rule, cost, actual } = run;
  if (rule.count === 'all') {
    // A request that another limiter refused has used nothing; one that `onLimited` let go on is not counted.
    if (!rule.reserve || refusedElsewhere || letGo) return actual ?? 0;
    return actual ?? cost;
  }
  return counts(run, ending) && !refusedElsewhere ? (actual ?? cost) : 0;
}
