import { NONE } from '../algorithms/index.js';
import type { Registers } from '../algorithms/index.js';
import type { Block } from './block.js';
import { NO_HOLDS } from './cell.js';
import type { Holds } from './cell.js';
import type { Reading, Reason, RuleReading } from './decision.js';
import type { HashedSubject, Operation } from './operation.js';
import { policyWindowMs } from './rule.js';
import type { Rule } from './rule.js';

/** Nothing has been decided yet. */
const UNDECIDED = -1;
/** Never changed: the sliding log makes a list of its own when it counts first. */
const NO_LOG: number[] = [];

const REASONS: ReadonlySet<unknown> = new Set<Reason>(['ok', 'blocked', 'cost', 'limit', 'held']);

/**
 * One rule asked of one subject in one call: the question, the counter as registers, and the answer. A store loads the
 * registers, `decide` works on them and leaves the reading, the store saves what changed. From the middleware to the headers
 * it is one and the same object; what users see is made of it when they ask.
 *
 * A class with all its fields set at once: what is made for every rule of every request must have one shape.
 */
export class Check implements Registers, RuleReading {
  readonly rule: Rule;
  readonly subject: HashedSubject;
  readonly operation: Operation;

  // The counter that the rule counts in, its holds, and the block of scope and subject, as the store loads them.
  a = NONE;
  b = 0;
  c = 0;
  log: number[] = NO_LOG;
  holds: Holds = NO_HOLDS;
  block: Block | undefined = undefined;

  /** Scaled units in the counter. */
  used = 0;
  /** The registers are no more as they were loaded. */
  changed = false;
  /** Counters of other windows are forgotten with this one. */
  forgotten = false;
  /** The automatic block started in this call. */
  blockStarted = false;
  /**
   * The store has repeated an earlier refusal, at once and without asking anybody: right for the caller, but no sign that
   * what lies behind the store is alive.
   */
  repeated = false;

  // The reading: see there.
  reason: Reason = 'ok';
  remaining = UNDECIDED;
  retryAfterMs: number | null = 0;
  moreAfterMs: number | null = 0;
  resetAfterMs: number | null = 0;
  /** How long the counter must be kept yet: the wait until nothing is used and nothing held, blocks left aside. */
  keepMs = 0;

  /**
   * @example
   * const check = new Check(rule, subject, { type: 'consume', cost: 1 });
   * const at = await store.decide([check]);
   */
  constructor(rule: Rule, subject: HashedSubject, operation: Operation) {
    this.rule = rule;
    this.subject = subject;
    this.operation = operation;
  }

  get scope(): string {
    return this.rule.scope;
  }

  get allowed(): boolean {
    return this.reason === 'ok';
  }

  get limit(): number {
    return this.rule.capacity;
  }

  get windowMs(): number {
    return policyWindowMs(this.rule);
  }

  get shadow(): boolean {
    return this.rule.shadow;
  }

  /** Has a store left a reading? */
  get isDecided(): boolean {
    return this.remaining >= 0;
  }

  /** Another operation on the same counter, undecided. */
  with(operation: Operation): Check {
    return new Check(this.rule, this.subject, operation);
  }

  /**
   * Takes the reading that another process left in its copy of this check. One that is not whole leaves the check undecided:
   * whatever a user's store reads from elsewhere, no header may say NaN.
   */
  take(reading: Omit<Reading, 'scope' | 'limit' | 'allowed'>, blockStarted = false): void {
    this.reason = reading.reason;
    this.remaining = isWhole(reading) ? reading.remaining : UNDECIDED;
    this.retryAfterMs = reading.retryAfterMs;
    this.moreAfterMs = reading.moreAfterMs;
    this.resetAfterMs = reading.resetAfterMs;
    this.blockStarted = blockStarted;
  }

  /** The reading as plain data. Written out and not spread, which costs several times as much. */
  get reading(): Reading {
    const { scope, capacity } = this.rule;
    const { allowed, reason, remaining, retryAfterMs, moreAfterMs, resetAfterMs } = this;
    return { scope, allowed, reason, limit: capacity, remaining, retryAfterMs, moreAfterMs, resetAfterMs };
  }

  /** The reading with what a client is told of its rule, as plain data. */
  get described(): RuleReading {
    const { scope, capacity, shadow } = this.rule;
    const { allowed, reason, remaining, retryAfterMs, moreAfterMs, resetAfterMs, windowMs } = this;
    return {
      scope,
      allowed,
      reason,
      limit: capacity,
      remaining,
      retryAfterMs,
      moreAfterMs,
      resetAfterMs,
      windowMs,
      shadow,
    };
  }
}

type Told = Pick<Reading, 'reason' | 'remaining' | 'retryAfterMs' | 'moreAfterMs' | 'resetAfterMs'>;

function isWhole({ reason, remaining, retryAfterMs, moreAfterMs, resetAfterMs }: Told): boolean {
  return (
    REASONS.has(reason) &&
    Number.isSafeInteger(remaining) &&
    isWait(retryAfterMs) &&
    isWait(moreAfterMs) &&
    isWait(resetAfterMs)
  );
}

const isWait = (wait: number | null): boolean => wait === null || Number.isFinite(wait);
