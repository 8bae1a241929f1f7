import type { Request, Response } from 'express';
import { received, typeError } from '../core/errors.js';
import { chain, isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import type { BatchItem, Operation } from '../core/operation.js';
import { HeldEnd } from './hold-end.js';
import { needsOutcome } from './options.js';
import type { RequestRule } from './options.js';
import { isRefusal } from './outcome.js';
import { charges } from './request-state.js';
import type { LimiterRun, RequestState, RuleRun } from './request-state.js';
import type { RateLimitOptions, RequestOutcome } from './types.js';
import { standsForSocket } from './web-socket.js';
import { warnOnce } from '../core/warn-once.js';

/**
 * How a request ended. `abandoned`: the client went away before the handler answered. Whether it would have been a success
 * nobody knows, and it counts for whatever a rule counts: hanging up must make nothing free.
 */
type Ending = RequestOutcome | 'abandoned';

/** Does the end of a request matter to this rule? */
export function hasLooseEnd(rule: RequestRule): boolean {
  return rule.reserve || needsOutcome(rule);
}

/** Has this request anything left to settle when it ends? Most have not, and their response is left alone. */
export function hasLooseEnds(run: LimiterRun): boolean {
  return run.rules.some(({ rule }) => hasLooseEnd(rule));
}

/**
 * Settles reservations and outcomes before the response leaves, and lets the headers say how things stand then. However many
 * limiters a response has met, its end is held once, and all of them settle side by side.
 *
 * @param next takes what the end throws after it was held.
 */
export function settleBeforeEnd(
  run: LimiterRun,
  state: RequestState,
  outcome: RateLimitOptions['outcome'],
  req: Request,
  res: Response,
  next: (error: unknown) => void,
): void {
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
    answered => settle(run, answered ? outcomeOf(run, outcome, req, res) : 'abandoned', isRefusal(res)),
    next,
  );
}

function isRefusing({ decision }: RequestState): boolean {
  return !decision.allowed;
}

function outcomeOf(
  run: LimiterRun,
  outcome: RateLimitOptions['outcome'],
  req: Request,
  res: Response,
): RequestOutcome {
  // Another limiter refused: what the request was going to be is not known.
  if (outcome === undefined || isRefusal(res)) return 'ignore';
  const report = (error: unknown): void => {
    // Without a word a login whose outcome is async, say, would be guessed at without an end.
    if (!run.engine.events.has('error')) warnOnce('LIMITKEEPER_OUTCOME_FAILED');
    run.engine.events.emit('error', { error, source: 'outcome' });
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
  const batch: BatchItem[] = [];
  for (const ruleRun of run.rules) {
    const operation = lastOperation(ruleRun, run, ending, refusedElsewhere);
    // From here on it is the end that has settled, and a handler may only correct it. What was consumed it may still give back.
    if (!ruleRun.taken || ruleRun.item.operation.type !== 'consume') ruleRun.spent = true;
    if (operation === undefined) continue;
    if (charges(operation)) ruleRun.charged = true;
    runs.push(ruleRun);
    batch.push({ ...ruleRun.item, operation });
  }
  if (batch.length === 0) return undefined;
  const settled = chain(run.engine.effect(batch, run.local), decision => {
    run.settled(decision, runs);
    // Where the store failed nothing was charged that could be corrected, also when the local one tells how things stand.
    const reached = decision.readings.length > 0 && (decision.degraded === undefined || run.local);
    if (reached) for (const { estimate } of runs) if (estimate) estimate.at = decision.at;
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
  const { rule, item, cost } = run;
  // In shadow mode it would have refused, and then the request would have had no end of its own.
  if (run.refused && item.rule.shadow) return undefined;
  if (rule.resetOnSuccess && ending === 'success') return { type: 'forgive' };
  if (run.spent) return undefined;
  const actual = unitsOf(run, ending, refusedElsewhere, limiter.letGo);
  if (rule.reserve && counts(run, ending) && !refusedElsewhere && run.actual === undefined) {
    run.estimate = { units: actual, at: undefined };
  }
  if (run.taken && item.operation.type === 'reserve') {
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
