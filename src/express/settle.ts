import type { Request, Response } from 'express';
import { received, typeError } from '../core/errors.js';
import { chain, isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import type { BatchItem, Operation } from '../core/operation.js';
import { beforeEnd } from './hold-end.js';
import { needsOutcome } from './options.js';
import { isRefusal } from './outcome.js';
import { charges } from './request-state.js';
import type { LimiterRun, RequestState, RuleRun } from './request-state.js';
import type { RateLimitOptions, RequestOutcome } from './types.js';

/** Has this request anything left to settle when it ends? Most have not, and their response is left alone. */
export function hasLooseEnds(run: LimiterRun): boolean {
  return run.rules.some(({ rule }) => rule.reserve || needsOutcome(rule));
}

/** Settles reservations and outcomes before the response leaves, and lets the headers say how things stand then. */
export function settleBeforeEnd(
  run: LimiterRun,
  state: RequestState,
  outcome: RateLimitOptions['outcome'],
  req: Request,
  res: Response,
): void {
  beforeEnd(res, () => {
    const result = outcomeOf(run, outcome, req, res);
    return chain(settle(run, result, isRefusal(res)), () => () => {
      state.writeHeaders();
    });
  });
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

function settle(run: LimiterRun, outcome: RequestOutcome, refusedElsewhere: boolean): MaybePromise<void> {
  const runs: RuleRun[] = [];
  const batch: BatchItem[] = [];
  for (const ruleRun of run.rules) {
    const operation = lastOperation(ruleRun, run, outcome, refusedElsewhere);
    // From here on it is too late for the handler to settle. What was consumed it may still give back.
    if (!ruleRun.taken || ruleRun.item.operation.type !== 'consume') ruleRun.spent = true;
    if (operation === undefined) continue;
    if (charges(operation)) ruleRun.charged = true;
    runs.push(ruleRun);
    batch.push({ ...ruleRun.item, operation });
  }
  if (batch.length === 0) return undefined;
  return chain(run.engine.effect(batch, run.local), decision => {
    run.settled(decision, runs);
  });
}

/** What the end of a request does to one rule. */
function lastOperation(
  run: RuleRun,
  limiter: LimiterRun,
  outcome: RequestOutcome,
  refusedElsewhere: boolean,
): Operation | undefined {
  const { rule, item, cost } = run;
  // In shadow mode it would have refused, and then the request would have had no end of its own.
  if (run.refused && item.rule.shadow) return undefined;
  if (rule.resetOnSuccess && outcome === 'success') return { type: 'forgive' };
  if (run.spent) return undefined;
  const actual = unitsOf(run, outcome, refusedElsewhere, limiter.letGo);
  if (run.taken && item.operation.type === 'reserve') {
    return { type: 'settle', at: limiter.decidedAt, held: cost, actual };
  }
  return actual > 0 ? { type: 'charge', units: actual } : undefined;
}

/** The units that the request costs after all; those that were consumed are paid already. */
function unitsOf(
  { rule, cost, actual }: RuleRun,
  outcome: RequestOutcome,
  refusedElsewhere: boolean,
  letGo: boolean,
): number {
  if (rule.count === 'all') {
    // A request that another limiter refused has used nothing; one that `onLimited` let go on is not counted.
    if (!rule.reserve || refusedElsewhere || letGo) return actual ?? 0;
    return actual ?? cost;
  }
  const counts = outcome === (rule.count === 'failures' ? 'failure' : 'success');
  return counts ? (actual ?? cost) : 0;
}
