import type { Decision, RuleReading } from '../core/decision.js';
import { costFor } from '../core/call.js';
import type { Costs } from '../core/call.js';
import { milliseconds } from '../core/validate.js';
import { rangeError, received, typeError } from '../core/errors.js';
import { checkCost } from '../core/limiter-options.js';
import type { Operation } from '../core/operation.js';
import { warnOnce } from '../core/warn-once.js';
import { stateOf } from './request-state.js';
import type { LimiterRun, RequestState } from './request-state.js';
import { charges } from './rule-run.js';
import type { RuleRun } from './rule-run.js';

/** What a handler can see and do of the rules that its request met. */
export interface RateLimitHandle {
  /** The tightest decision so far; one that allows everything where no limiter ran. */
  readonly decision: Decision;
  /**
   * Settles the reservations of this request (rules with `reserve: true`) with the real cost, for all or for each scope.
   * The first call counts, also after the response has ended or the client has gone: it then corrects the estimate that was
   * charged. Rules that also count by outcome charge it when the response ends, if they count it.
   *
   * @throws RangeError `ERR_LIMITKEEPER_UNKNOWN_SCOPE`, `ERR_LIMITKEEPER_COST`
   */
  settle(actual: Costs): Promise<void>;
  /**
   * One rule, by its scope. Where the rule is no part of this request (`when`, `skip`, an unlimited plan) the reading is
   * `undefined` and the operations do nothing.
   *
   * @throws RangeError `ERR_LIMITKEEPER_UNKNOWN_SCOPE` where no limiter on the way has a rule of this scope.
   */
  scope(name: string): ScopeHandle;
}

/** Operations on the subject of this request in one scope. Each answers the reading after it. */
export interface ScopeHandle {
  readonly reading: RuleReading | undefined;
  /** What a success does: forgets all but a standing manual block. */
  forgive(): Promise<RuleReading | undefined>;
  /** Forgets counter, holds, block and strikes. */
  reset(): Promise<RuleReading | undefined>;
  /** Blocks by hand for seconds, or `'forever'`. */
  block(sec: number | 'forever'): Promise<RuleReading | undefined>;
  /** Ends the block and forgets the strikes. */
  unblock(): Promise<RuleReading | undefined>;
  /** Adds units, past the limit if need be. */
  charge(units: number): Promise<RuleReading | undefined>;
  /** Gives back what this request consumed, or `units` of it; once. */
  refund(units?: number): Promise<RuleReading | undefined>;
}

/**
 * The limits that a request has met so far, for its handler.
 *
 * @throws TypeError `ERR_LIMITKEEPER_OPTION_TYPE` where `req` is no object.
 * @example
 * app.post('/ask', rateLimit({ scope: 'ai', limit: 50_000, windowSec: 86_400, cost: 800, reserve: true }), async (req, res) => {
 *   const answer = await ask(req.body);
 *   await getRateLimit(req).settle(answer.usage.total);
 *   res.json(answer);
 * });
 */
export function getRateLimit(req: object): RateLimitHandle {
  if (typeof req !== 'object' || (req as unknown) === null) {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `getRateLimit(req): req must be the request, got ${received(req)}.`,
      { option: 'req' },
    );
  }
  const state = stateOf(req);
  return {
    get decision() {
      return state.decision;
    },
    settle: async actual => {
      await settleReservations(state, actual);
    },
    scope: name => scopeHandle(state, name),
  };
}

async function settleReservations(state: RequestState, actual: Costs): Promise<void> {
  // Anything but a map goes through the check for a number, and fails there.
  if (typeof actual !== 'object' || (actual as unknown) === null) checkCost(actual, 'settle(n): n');
  else {
    for (const [scope, units] of Object.entries(actual)) {
      const found = find(state, scope);
      if (found?.run.rule.reserve === false) {
        throw rangeError(
          'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
          `settle: scope ${JSON.stringify(scope)} reserves nothing. Set reserve: true on its rule, or use scope(name).charge(n).`,
        );
      }
      checkCost(units, `settle: the cost of scope ${JSON.stringify(scope)}`);
    }
  }
  // A rule that reserves and is no part of this request (`when`, `skip`, an unlimited plan) has nothing to settle either.
  if (!state.runs.some(({ limiter }) => limiter.reserves)) warnOnce('LIMITKEEPER_NOTHING_RESERVED');
  for (const met of state.runs) {
    const named = met.ruleRuns.filter(
      ({ rule, actual: earlier }) =>
        rule.reserve &&
        earlier === undefined &&
        (typeof actual === 'number' || Object.hasOwn(actual, rule.template.scope)),
    );
    for (const run of named) run.actual = costFor(actual, run.rule.template.scope, run.cost);
    await met.settling;
    // Those that count by outcome wait for it; the others are settled now, so that the units on hold are free at once.
    const now = named.filter(({ rule, spent, estimate }) =>
      spent ? estimate?.at !== undefined : rule.count === 'all',
    );
    await settleNow(met, now);
  }
  state.writeHeaders();
}

async function settleNow(met: LimiterRun, runs: readonly RuleRun[]): Promise<void> {
  const checks = runs.map(run => {
    const operation = settling(met, run);
    run.spent = true;
    if (charges(operation)) run.charged = true;
    return run.check.with(operation);
  });
  if (checks.length === 0) return;
  await met.effect(checks, runs);
}

/** What makes the units that are charged the real ones. */
function settling(met: LimiterRun, run: RuleRun): Operation {
  const actual = run.actual ?? run.cost;
  if (run.estimate?.at !== undefined) {
    const more = actual - run.estimate.units;
    return more < 0 ? { type: 'refund', at: run.estimate.at, units: -more } : { type: 'charge', units: more };
  }
  // Nothing is on hold where the store failed open, or where onLimited let a refused request go on.
  return run.taken
    ? { type: 'settle', at: met.decidedAt, held: run.cost, actual }
    : { type: 'charge', units: actual };
}

function scopeHandle(state: RequestState, name: string): ScopeHandle {
  const found = find(state, name);
  const act = async (operation: Operation): Promise<RuleReading | undefined> => {
    if (found === undefined) return undefined;
    const { met, run } = found;
    if (charges(operation)) run.charged = true;
    await met.effect([run.check.with(operation)], [run]);
    state.writeHeaders();
    return run.reading;
  };
  return {
    get reading() {
      return found?.run.reading;
    },
    forgive: () => act({ type: 'forgive' }),
    reset: () => act({ type: 'reset' }),
    unblock: () => act({ type: 'unblock' }),
    block: async sec =>
      act({
        type: 'block',
        ms: sec === 'forever' ? null : milliseconds(sec, 'block(sec): sec', { zero: false }),
      }),
    charge: async units => act({ type: 'charge', units: checkCost(units, 'charge(n): n') }),
    refund: async units => {
      const wanted = units === undefined ? Infinity : checkCost(units, 'refund(n): n');
      if (found === undefined) return undefined;
      const { run, met } = found;
      if (run.spent || !run.taken || run.check.operation.type !== 'consume') return run.reading;
      run.spent = true;
      return act({ type: 'refund', at: met.decidedAt, units: Math.min(wanted, run.cost) });
    },
  };
}

/** The run of a scope; `undefined` where the rule is known but no part of this request. */
function find(state: RequestState, scope: string): { met: LimiterRun; run: RuleRun } | undefined {
  const known: string[] = [];
  for (const met of state.runs) {
    known.push(...met.limiter.scopes);
    const run = met.ruleRuns.find(({ rule }) => rule.template.scope === scope);
    if (run !== undefined) return { met, run };
  }
  if (known.includes(scope)) return undefined;
  throw rangeError(
    'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
    `no limiter on the way of this request has a rule of scope ${JSON.stringify(scope)}; there are ${known.join(', ') || 'none'}.`,
  );
}
