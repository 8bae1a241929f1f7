import type { ServerResponse } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import type { Check } from '../core/check.js';
import { fold, unlimited } from '../core/decision.js';
import type { Decision, RuleReading } from '../core/decision.js';
import type { Verdict } from '../core/verdict.js';
import { isTighter, namesLeftOut, setHeaders } from './headers.js';
import type { Announcement, HeaderOptions, Told } from './headers.js';
import type { HeldEnd } from './hold-end.js';
import { hasLooseEnd } from './options.js';
import type { RequestRule } from './options.js';
import type { RequestLimiter } from './request-limiter.js';
import { RuleRun } from './rule-run.js';

/** What one limiter did in one request. */
export class LimiterRun implements Announcement {
  readonly limiter: RequestLimiter;
  readonly state: RequestState;
  readonly req: Request;
  readonly res: Response;
  next: NextFunction;
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

  constructor(limiter: RequestLimiter, state: RequestState, req: Request, res: Response, next: NextFunction) {
    this.limiter = limiter;
    this.state = state;
    this.req = req;
    this.res = res;
    this.next = next;
  }

  /** @param checks one for each rule of the limiter; `undefined` for one that is no part of this request */
  asks(checks: readonly (Check | undefined)[]): void {
    const { rules } = this.limiter;
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
    const { verdict, checks, rules } = this;
    // Somebody asks before it has decided, e.g. the `keyFn` of a limiter.
    if (verdict === undefined) return [];
    this.#ruleRuns ??= rules.flatMap((rule, i) => {
      const check = checks[i];
      return check === undefined ? [] : [new RuleRun(rule, check, verdict.checks[i], verdict.allowed)];
    });
    return this.#ruleRuns;
  }

  /** Has this request anything left to settle when it ends? Most have not, and their response is left alone. */
  get hasLooseEnds(): boolean {
    return this.limiter.hasLooseEnds && this.rules.some(hasLooseEnd);
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
      run.take(checks[i]?.described);
    });
    const readings = this.ruleRuns.flatMap(({ reading }) => reading ?? []);
    this.#settled = { ...decision, ...fold(readings, at) };
    this.silent = false;
  }

  /** Has operations done on counters of this request, and takes how they stand then. */
  async effect(checks: readonly Check[], runs: readonly RuleRun[]): Promise<void> {
    this.settled(await this.limiter.engine.effect(checks, this.local), runs);
  }

  get told(): Told | undefined {
    return this.silent ? undefined : (this.#settled ?? this.verdict);
  }

  get headers(): HeaderOptions | undefined {
    return this.limiter.options.headers;
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

/** All limiters that a request has met, in order. */
export class RequestState {
  runs: readonly LimiterRun[] = NO_RUNS;
  /** Where the limiters speak; known as soon as one has run. */
  response: ServerResponse | undefined = undefined;
  /** Holds the response while limiters settle; `undefined` where none has anything to settle. */
  heldEnd: HeldEnd | undefined = undefined;
  /** The headers set, as {@link setHeaders} tells them. */
  #set = 0;

  has(limiter: RequestLimiter): boolean {
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

export function stateOf(req: object): RequestState {
  const holder = req as { [STATE]: RequestState | undefined };
  return (holder[STATE] ??= new RequestState());
}
