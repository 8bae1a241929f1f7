import { Check } from '../core/check.js';
import type { Reading } from '../core/decision.js';
import type { HashedSubject, Operation } from '../core/operation.js';
import type { Rule } from '../core/rule.js';
import type { Store, SyncStore } from '../core/store.js';

/** One rule of a call, as plain data. */
export interface BatchItem {
  readonly rule: Rule;
  readonly subject: HashedSubject;
  readonly operation: Operation;
}

export type Batch = readonly BatchItem[];

/** What a store made of a batch, as plain data. */
export interface BatchResult {
  readonly at: number;
  /** One per item, in order. */
  readonly readings: readonly Reading[];
  /** The items (by index) whose automatic block started in this call. */
  readonly blockStarted: readonly number[];
  readonly repeated?: true;
}

/** Asks a store with fresh checks. */
export function applyBatch(store: SyncStore, batch: Batch, deadlineMs?: number): BatchResult;
export function applyBatch(
  store: Store,
  batch: Batch,
  deadlineMs?: number,
): BatchResult | Promise<BatchResult>;
export function applyBatch(
  store: Store,
  batch: Batch,
  deadlineMs?: number,
): BatchResult | Promise<BatchResult> {
  const checks = batch.map(({ rule, subject, operation }) => new Check(rule, subject, operation));
  const at = store.decide(checks, deadlineMs);
  return typeof at === 'number' ? resultOf(checks, at) : at.then(time => resultOf(checks, time));
}

/** @throws where the store has left no reading in a check. */
export function resultOf(checks: readonly Check[], at: number): BatchResult {
  const undecided = checks.findIndex(check => !check.isDecided);
  if (undecided >= 0) throw new Error(`the store has left no reading in check ${String(undecided)}`);
  return {
    at,
    readings: checks.map(({ reading }) => reading),
    blockStarted: checks.flatMap(({ blockStarted }, i) => (blockStarted ? [i] : [])),
    ...(checks[0]?.repeated === true ? { repeated: true } : {}),
  };
}
