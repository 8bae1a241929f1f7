import { NONE } from '../algorithms/index.js';
import type { Registers } from '../algorithms/index.js';
import type { Block } from './block.js';
import { NO_HOLDS } from './cell.js';
import type { Holds } from './cell.js';
import type { Reading, Reason } from './decision.js';
import type { HashedSubject, Operation } from './operation.js';
import type { Rule } from './rule.js';

/**
 * One rule asked of one subject in one call: the question, the cell of it as registers, and the reading. A store loads the
 * registers, `decide` works on them and leaves the reading, the store saves what changed.
 *
 * A class with all its fields set at once: what is made for every rule of every request must have one shape.
 */
export class Check implements Registers {
  readonly rule: Rule;
  readonly subject: HashedSubject;
  readonly operation: Operation;

  // The cell, as the store loads it: the counter that the rule counts in, its holds, and the block of scope and subject.
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

  // The reading: see there.
  reason: Reason = 'ok';
  remaining = 0;
  retryAfterMs: number | null = 0;
  moreAfterMs: number | null = 0;
  resetAfterMs: number | null = 0;
  /** How long the counter must be kept yet: the wait until nothing is used and nothing held, blocks left aside. */
  keepMs = 0;

  constructor(rule: Rule, subject: HashedSubject, operation: Operation) {
    this.rule = rule;
    this.subject = subject;
    this.operation = operation;
  }

  /** As plain data. */
  get reading(): Reading {
    const { rule, reason, remaining, retryAfterMs, moreAfterMs, resetAfterMs } = this;
    const { scope, capacity } = rule;
    const allowed = reason === 'ok';
    return { scope, allowed, reason, limit: capacity, remaining, retryAfterMs, moreAfterMs, resetAfterMs };
  }
}

/** Never changed: the sliding log makes a list of its own when it counts first. */
const NO_LOG: number[] = [];
