import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Check } from '../core/check.js';
import { fold, unlimited } from '../core/decision.js';
import type { Decision, RuleReading } from '../core/decision.js';
import type { Engine } from '../core/engine.js';
import type { Operation } from '../core/operation.js';
import type { Verdict } from '../core/verdict.js';
import { isTighter, namesLeftOut, setHeaders } from './headers.js';
import type { Announcement, HeaderOptions, Told } from './headers.js';
import type { HeldEnd } from './hold-end.js';
import type { RequestRule } from './options.js';

/** What one rule did in one request, where more than its check is asked for. */
export class RuleRun {
  readonly rule: RequestRule;
  /** As it was asked. */
  readonly check: Check;
  readonly cost: number;
  /** The latest: after the decision, then after whatever the handler or the outcome did. */
  reading: RuleReading | undefined;
  /** The decision took the cost: it was consumed, or is on hold. */
  readonly taken: boolean;
  /** It counted: the cost was consumed or is on hold for good, or the outcome was charged. */
  charged: boolean;
  /** The decision found that this rule refuses (in shadow mode: would). */
  readonly refused: boolean;
  /** The real cost, where the handler has settled it. */
  actual: number | undefined = undefined;
  /** The hold was settled, or the consumed units were given back: once. */
  spent = false;
  /**
   * What the end of the request charged as an estimate, and the store's time of it (`undefined` while it is under way, and
   * where the store failed): a handler that learns the real cost later corrects it.
   */
  estimate: { readonly units: number; at: number | undefined } | undefined = undefined;

  /** @param decided `undefined` where the store failed and nobody counted */
  constructor(rule: RequestRule, check: Check, decided: Check | undefined, allowed: boolean) {
    const { operation } = check;
    this.rule = rule;
    this.check = check;
    this.cost = 'cost' in operation ? operation.cost : 0;
    this.reading = decided?.described;
    this.refused = decided?.allowed === false;
    this.taken = allowed && decided?.allowed === true && operation.type !== 'peek';
    this.charged = this.taken && rule.count === 'all';
  }
}

/** What the limiter of a run is made of; the same for all requests. */
export interface RunLimiter {
  readonly engine: Engine;
  /** All scopes, also of rules that are no part of a request. */
  readonly scopes: readonly string[];
  readonly headers: HeaderOptions | undefined;
  /** Has it a rule with `reserve: true`? */
  readonly reserves: boolean;
  /** Does every rule count all requests? Then what is decided is charged. */
  readonly countsAll: boolean;
}

/** What one limiter did in one request. */
export class LimiterRun implements Announcement {
  readonly limiter: RunLimiter;
  /** `undefined` until it has decided, and where it passed the request unasked. */
  verdict: Verdict | undefined = undefined;
  /** The rules that took part, and what they asked. */
  rules: readonly RequestRule[] = [];
  checks: readonly Check[] = [];
  /** A refused request that `onLimited` let go on. */
  letGo = false;
  /** Its decision is no news for the client (any more). */
  silent = false;
  /** The settling at the end of the request, where it takes time. */
  settling: Promise<void> | undefined = undefined;
  #ruleRuns: readonly RuleRun[] | undefined = undefined;
  /** After a settling, in the place of the verdict. */
  #settled: Decision | undefined = undefined;

  constructor(limiter: RunLimiter) {
    this.limiter = limiter;
  }

  /** @param checks one for each rule; `undefined` for one that is no part of this request */
  asks(rules: readonly RequestRule[], checks: readonly (Check | undefined)[]): void {
    if (checks.includes(undefined)) {
      this.rules = rules.filter((_, i) => checks[i] !== undefined);
      this.checks = checks.filter(check => check !== undefined);
    } else {
      this.rules = rules;
      this.checks = checks as readonly Check[];
    }
  }

  /** Made when first asked for: most requests only consume. */
  get ruleRuns(): readonly RuleRun[] {
    return (this.#ruleRuns ??= this.#makeRuleRuns());
  }

  #makeRuleRuns(): RuleRun[] {
    const { verdict, checks, rules } = this;
    if (verdict === undefined) return [];
    return rules.flatMap((rule, i) => {
      const check = checks[i];
      return check === undefined ? [] : [new RuleRun(rule, check, verdict.checks[i], verdict.allowed)];
    });
  }

  get decision(): Decision | undefined {
    return this.#settled ?? this.verdict?.decision;
  }

  /** The store's time of the decision, with which holds are settled and units given back. */
  get decidedAt(): number {
    return this.verdict?.at ?? 0;
  }

  /** The process's own store decided, in place of one that failed: what follows belongs there. */
  get local(): boolean {
    return this.verdict?.degraded === 'local';
  }

  /** A decision as of now: the latest readings in the place of the earlier ones. */
  settled({ checks, at }: Verdict, runs: readonly RuleRun[]): void {
    const { decision } = this;
    if (decision === undefined || checks.length === 0) return;
    runs.forEach((run, i) => {
      run.reading = forNextRequest(checks[i]?.described, run.cost);
    });
    const readings = this.ruleRuns.flatMap(({ reading }) => reading ?? []);
    this.#settled = { ...decision, ...fold(readings, at) };
    this.silent = false;
  }

  get told(): Told | undefined {
    return this.silent ? undefined : (this.#settled ?? this.verdict);
  }

  get headers(): HeaderOptions | undefined {
    return this.limiter.headers;
  }

  /**
   * A rule that waits for the outcome is not what this request is measured by: of an API whose good tokens have 300 requests,
   * the 120 that bad ones have would be told to everybody.
   */
  get shown(): RuleReading | 'waiting' | undefined {
    if (this.limiter.countsAll || this.told?.allowed !== true) return undefined;
    if (this.ruleRuns.every(({ charged }) => charged)) return undefined;
    let shown: RuleReading | undefined;
    for (const { charged, reading } of this.ruleRuns) {
      if (!charged || reading === undefined || reading.shadow) continue;
      if (shown === undefined || reading.remaining < shown.remaining) shown = reading;
    }
    return shown ?? 'waiting';
  }
}

/**
 * What an effect answers is read for a cost of 0: of a block of a minute in a window of an hour it says "a minute". The
 * client comes back with a request that costs something and must be told when that passes, or they wait as told, are
 * refused again, and start the next block. For a cost above 1 this is when the first unit fits; more is not known here.
 */
function forNextRequest(reading: RuleReading | undefined, cost: number): RuleReading | undefined {
  if (reading === undefined || reading.allowed || cost === 0) return reading;
  return { ...reading, retryAfterMs: reading.moreAfterMs };
}

/** Does it count units, whatever was held before? */
export function charges(operation: Operation): boolean {
  return (
    (operation.type === 'charge' && operation.units > 0) ||
    (operation.type === 'settle' && operation.actual > 0)
  );
}

/** All limiters that a request has met, in order. */
export class RequestState {
  runs: readonly LimiterRun[] = NO_RUNS;
  /** Where the limiters speak; known as soon as one has run. */
  response: ServerResponse | undefined = undefined;
  /** Holds the response while limiters settle; `undefined` where none has anything to settle. */
  heldEnd: HeldEnd | undefined = undefined;
  /** The headers set, as {@link setHeaders} tells them. */
  #set = 0;

  has(limiter: RunLimiter): boolean {
    for (const run of this.runs) if (run.limiter === limiter) return true;
    return false;
  }

  add(run: LimiterRun): void {
    this.runs = this.runs.length === 0 ? [run] : [...this.runs, run];
  }

  /** The tightest decision so far: refusing before allowing, then the fewest remaining. */
  get decision(): Decision {
    let tightest: Decision | undefined;
    for (const { decision } of this.runs) {
      // One without an enforced rule has nothing to compare, unless it says that the store failed.
      if (decision === undefined || (decision.scope === null && decision.degraded === undefined)) continue;
      if (tightest === undefined || isTighter(decision, tightest, Infinity)) tightest = decision;
    }
    return tightest ?? unlimited(Date.now());
  }

  /** Writes what all limiters have to say, in the place of what was said before. */
  writeHeaders(): void {
    const res = this.response;
    if (res === undefined || res.headersSent) return;
    const before = this.#set;
    this.#set = setHeaders(res, this.runs);
    if ((before & ~this.#set) === 0) return;
    for (const name of namesLeftOut(before, this.#set)) res.removeHeader(name);
  }
}

const NO_RUNS: readonly LimiterRun[] = [];

/**
 * The state hangs on the request itself, under a symbol that no other name can meet. A WeakMap would leave the request alone
 * altogether, but its entries make every quick garbage collection look at all requests under way. Shared by the ESM and the
 * CommonJS copy: the handler may have loaded the other one.
 */
const STATE = Symbol.for('limitkeeper.request.v3');

export function stateOf(req: IncomingMessage | object): RequestState {
  const holder = req as { [STATE]: RequestState | undefined };
  return (holder[STATE] ??= new RequestState());
}
