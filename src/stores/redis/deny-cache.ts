import type { Clock } from '../../core/clock.js';
import type { Reading } from '../../core/decision.js';
import { decides } from '../../core/operation.js';
import type { Batch, BatchItem } from '../../core/operation.js';
import type { BatchResult } from '../../core/store.js';
import type { Outcome } from './outcome.js';

/** So many subjects at most; the oldest go first. */
const MAX_SUBJECTS = 10_000;
/** So many different calls about one subject at most. */
const MAX_PER_SUBJECT = 8;

interface Entry {
  readonly batch: Batch;
  readonly outcome: Outcome;
  readonly taken: number;
  readonly validMs: number;
}

/**
 * Refusals of blocked subjects, repeated without asking Redis: an attacker who sends the same request again and again costs a
 * call a second.
 *
 * Exact as long as nobody else touches the subject: while a block stands its rule changes by nothing but time, and a refused
 * call charges nothing. An entry therefore answers the very same call only (rules, costs, subjects), and for no longer than
 * `denyCacheMs`, until a block in it ends, or until time alone changes more than the waits: so no other process's unblock
 * goes unnoticed for longer than `denyCacheMs`. What this process does to a subject empties its entries at once.
 */
export class DenyCache {
  readonly #maxMs: number;
  readonly #clock: Clock | undefined;
  readonly #entries = new Map<string, Entry[]>();
  #epoch = 0;

  constructor(maxMs: number, clock: Clock | undefined) {
    this.#maxMs = maxMs;
    this.#clock = clock;
  }

  #now(): number {
    return this.#clock?.now() ?? performance.now();
  }

  /** The refusal that Redis would answer, if it is known. */
  find(batch: Batch): BatchResult | undefined {
    if (this.#entries.size === 0) return undefined;
    const entry = sameCall(this.#entries.get(batch[0]?.subject.hash ?? ''), batch);
    if (entry === undefined) return undefined;
    const elapsed = Math.floor(this.#now() - entry.taken);
    if (elapsed < 0 || elapsed >= entry.validMs) {
      this.#remove(entry);
      return undefined;
    }
    const { at, readings } = entry.outcome;
    return {
      at: at + elapsed,
      readings: readings.map(reading => later(reading, elapsed)),
      blockStarted: [],
      repeated: true,
    };
  }

  /** A mark to pass to {@link learn}: what was asked before an own unblock must not be remembered after it. */
  get epoch(): number {
    return this.#epoch;
  }

  learn(batch: Batch, outcome: Outcome, epoch: number): void {
    if (this.#maxMs === 0) return;
    if (this.#entries.size > 0 && outcome.readings.some(({ allowed }) => allowed))
      this.#dropAllowed(batch, outcome);
    if (outcome.blocks.length === 0 || epoch !== this.#epoch) return;
    const isDenied = batch.some(({ rule }, i) => !rule.shadow && outcome.readings[i]?.reason === 'blocked');
    if (!isDenied || !batch.every(({ operation }) => decides(operation))) return;
    // In a test's time the reply's own time counts: the clock may have moved since.
    const taken = this.#clock === undefined ? performance.now() : outcome.at;
    const entry: Entry = { batch, outcome, taken, validMs: this.#validity(outcome) };
    for (const hash of subjectsOf(batch)) this.#put(hash, entry);
  }

  #validity({ blocks, readings }: Outcome): number {
    let valid = this.#maxMs;
    for (const { lastsMs } of blocks) valid = Math.min(valid, lastsMs ?? Infinity);
    for (const { reason, retryAfterMs, moreAfterMs } of readings) {
      if (reason === 'blocked') continue;
      // Beyond these, other rules would answer something else, if only a larger `remaining`.
      if (retryAfterMs !== null && retryAfterMs > 0) valid = Math.min(valid, retryAfterMs);
      if (moreAfterMs !== null && moreAfterMs > 0) valid = Math.min(valid, moreAfterMs);
    }
    return valid;
  }

  #put(hash: string, entry: Entry): void {
    const others = (this.#entries.get(hash) ?? []).filter(other => !isSame(other.batch, entry.batch));
    if (others.length >= MAX_PER_SUBJECT) others.shift();
    this.#entries.delete(hash);
    this.#entries.set(hash, [...others, entry]);
    if (this.#entries.size > MAX_SUBJECTS) {
      for (const oldest of this.#entries.keys()) {
        this.#entries.delete(oldest);
        break;
      }
    }
  }

  /** Call it before and after an operation that may lift a block or change what is counted. */
  drop(items: readonly Pick<BatchItem, 'rule' | 'subject'>[]): void {
    this.#epoch += 1;
    if (this.#entries.size === 0) return;
    for (const { rule, subject } of items) this.dropSubject(subject.hash, [rule.scope]);
  }

  #dropAllowed(batch: Batch, outcome: Outcome): void {
    // What an allowed call has changed is not what was remembered.
    const isCharged = batch.every(({ rule }, i) => rule.shadow || outcome.readings[i]?.allowed === true);
    if (!isCharged) return;
    for (const { rule, subject } of batch) this.dropSubject(subject.hash, [rule.scope]);
  }

  dropSubject(hash: string, scopes?: readonly string[]): void {
    for (const entry of this.#entries.get(hash) ?? []) {
      const speaks = entry.batch.some(
        ({ rule, subject }) => subject.hash === hash && (scopes === undefined || scopes.includes(rule.scope)),
      );
      if (speaks) this.#remove(entry);
    }
  }

  clear(): void {
    this.#epoch += 1;
    this.#entries.clear();
  }

  #remove(entry: Entry): void {
    for (const hash of subjectsOf(entry.batch)) {
      const left = this.#entries.get(hash)?.filter(other => other !== entry) ?? [];
      if (left.length === 0) this.#entries.delete(hash);
      else this.#entries.set(hash, left);
    }
  }
}

const subjectsOf = (batch: Batch): Set<string> => new Set(batch.map(({ subject }) => subject.hash));

// Plain loops: this is all that an attacker's request costs.
function sameCall(entries: readonly Entry[] | undefined, batch: Batch): Entry | undefined {
  if (entries === undefined) return undefined;
  for (const entry of entries) if (isSame(entry.batch, batch)) return entry;
  return undefined;
}

function isSame(a: Batch, b: Batch): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i += 1) if (!isSameItem(a[i], b[i])) return false;
  return true;
}

function isSameItem(a: BatchItem | undefined, b: BatchItem | undefined): boolean {
  return (
    a !== undefined &&
    a.rule === b?.rule &&
    a.subject.hash === b.subject.hash &&
    decides(a.operation) &&
    decides(b.operation) &&
    a.operation.type === b.operation.type &&
    a.operation.cost === b.operation.cost
  );
}

const less = (wait: number | null, elapsed: number): number | null =>
  wait === null ? null : Math.max(0, wait - elapsed);

function later(reading: Reading, elapsed: number): Reading {
  const { scope, allowed, reason, limit, remaining, retryAfterMs, moreAfterMs, resetAfterMs } = reading;
  return {
    scope,
    allowed,
    reason,
    limit,
    remaining,
    retryAfterMs: less(retryAfterMs, elapsed),
    moreAfterMs: less(moreAfterMs, elapsed),
    resetAfterMs: less(resetAfterMs, elapsed),
  };
}
