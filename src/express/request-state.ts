import type { IncomingMessage, ServerResponse } from 'node:http';
import { fold, unlimited } from '../core/decision.js';
import type { Decision, RuleReading } from '../core/decision.js';
import type { Engine } from '../core/engine.js';
import type { BatchItem, Operation } from '../core/operation.js';
import { mergedHeaders } from './headers.js';
import type { Announcement, HeaderOptions } from './headers.js';
import type { HeldEnd } from './hold-end.js';
import type { RequestRule } from './options.js';

/** What one rule did in one request. */
export interface RuleRun {
  readonly rule: RequestRule;
  readonly item: BatchItem;
  readonly cost: number;
  /** The latest: after the decision, then after whatever the handler or the outcome did. */
  reading: RuleReading | undefined;
  /** The decision took the cost: it was consumed, or is on hold. */
  taken: boolean;
  /** It counted: the cost was consumed or is on hold for good, or the outcome was charged. */
  charged: boolean;
  /** The decision found that this rule refuses (in shadow mode: would). */
  refused: boolean;
  /** The real cost, where the handler has settled it. */
  actual: number | undefined;
  /** The hold was settled, or the consumed units were given back: once. */
  spent: boolean;
  /**
   * What the end of the request charged as an estimate, and the store's time of it (`undefined` while it is under way, and
   * where the store failed): a handler that learns the real cost later corrects it.
   */
  estimate: { readonly units: number; at: number | undefined } | undefined;
}

/** What one limiter did in one request. */
export class LimiterRun {
  readonly engine: Engine;
  /** All scopes of the limiter, also of rules that are no part of this request. */
  readonly scopes: readonly string[];
  readonly headers: HeaderOptions | undefined;
  /** Has the limiter a rule with `reserve: true`, even if it is no part of this request? */
  readonly reserves: boolean;
  decision: Decision | undefined;
  /** The store's time of the decision, with which holds are settled and units given back. */
  decidedAt = 0;
  /** The process's own store decided, in place of one that failed: what follows belongs there. */
  local = false;
  rules: readonly RuleRun[] = [];
  /** A refused request that `onLimited` let go on. */
  letGo = false;
  /** Its decision is no news for the client (any more). */
  silent = false;
  /** The settling at the end of the request, where it takes time. */
  settling: Promise<void> | undefined = undefined;

  constructor(
    engine: Engine,
    scopes: readonly string[],
    headers: HeaderOptions | undefined,
    reserves: boolean,
  ) {
    this.engine = engine;
    this.scopes = scopes;
    this.headers = headers;
    this.reserves = reserves;
  }

  decided(decision: Decision, rules: readonly RuleRun[]): void {
    this.decision = decision;
    this.decidedAt = decision.at;
    this.local = decision.degraded === 'local';
    this.rules = rules;
    rules.forEach((run, i) => {
      run.reading = decision.readings[i];
    });
    for (const run of rules) {
      run.refused = run.reading?.allowed === false;
      run.taken = decision.allowed && run.reading?.allowed === true && run.item.operation.type !== 'peek';
      run.charged = run.taken && run.rule.count === 'all';
    }
  }

  /** A decision as of now: the latest readings in the place of the earlier ones. */
  settled(decision: Decision, rules: readonly RuleRun[]): void {
    if (this.decision === undefined || decision.readings.length === 0) return;
    rules.forEach((run, i) => {
      run.reading = forNextRequest(decision.readings[i], run.cost);
    });
    const readings = this.rules.flatMap(({ reading }) => reading ?? []);
    this.decision = { ...this.decision, ...fold(readings, decision.at) };
    this.silent = false;
  }

  /**
   * What it has to say to the client; `undefined`: nothing. A rule that waits for the outcome is not what this request is
   * measured by: of an API whose good tokens have 300 requests, the 120 that bad ones have would be told to everybody.
   */
  announcement(): Announcement | undefined {
    const { decision, headers: options, silent, rules } = this;
    if (decision === undefined || silent) return undefined;
    if (!decision.allowed || rules.every(({ charged }) => charged)) return { decision, options };
    let shown: RuleReading | undefined;
    for (const { charged, reading } of rules) {
      if (!charged || reading === undefined || reading.shadow) continue;
      if (shown === undefined || reading.remaining < shown.remaining) shown = reading;
    }
    return { decision, options, shown: shown ?? 'waiting' };
  }
}

/**
 * What an effect answers is read for a cost of 0: of a block of a minute in a window of an hour it says "a minute". The
 * client comes back with a request that costs something and must be told when that passes, or he waits as told, is
 * refused again, and starts the next block. For a cost above 1 this is when the first unit fits; more is not known here.
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
  readonly runs = new Map<object, LimiterRun>();
  /** Where the limiters speak; known as soon as one has run. */
  response: ServerResponse | undefined;
  /** Holds the response while limiters settle; `undefined` where none has anything to settle. */
  heldEnd: HeldEnd | undefined = undefined;
  #sent: readonly string[] = [];

  /** The tightest decision so far: refusing before allowing, then the fewest remaining. */
  get decision(): Decision {
    let tightest: Decision | undefined;
    for (const { decision } of this.runs.values()) {
      // One without an enforced rule has nothing to compare, unless it says that the store failed.
      if (decision === undefined || (decision.scope === null && decision.degraded === undefined)) continue;
      if (tightest === undefined || isTighter(decision, tightest)) tightest = decision;
    }
    return tightest ?? unlimited(Date.now());
  }

  /** Writes what all limiters have to say, in the place of what was said before. */
  writeHeaders(): void {
    const res = this.response;
    if (res === undefined || res.headersSent) return;
    const headers = mergedHeaders([...this.runs.values()].flatMap(run => run.announcement() ?? []));
    for (const name of this.#sent) if (!Object.hasOwn(headers, name)) res.removeHeader(name);
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
    this.#sent = Object.keys(headers);
  }
}

/** Ties go to the longer wait, as in the headers; then to the first. */
function isTighter(a: Decision, b: Decision): boolean {
  if (a.allowed !== b.allowed) return !a.allowed;
  const [left, right] = [a.remaining ?? Infinity, b.remaining ?? Infinity];
  return left === right ? (a.retryAfterMs ?? Infinity) > (b.retryAfterMs ?? Infinity) : left < right;
}

/**
 * The state hangs on the request itself, under a symbol that no other name can meet. A WeakMap would leave the request alone
 * altogether, but its entries make every quick garbage collection look at all requests under way. Shared by the ESM and the
 * CommonJS copy: the handler may have loaded the other one.
 */
const STATE = Symbol.for('limitkeeper.request.v2');

export function stateOf(req: IncomingMessage | object): RequestState {
  const holder = req as { [STATE]: RequestState | undefined };
  return (holder[STATE] ??= new RequestState());
}
