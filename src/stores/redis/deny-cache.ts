import type { Clock } from '../../core/clock.js';
import type { Check } from '../../core/check.js';
import { decides } from '../../core/operation.js';
import type { BlockNews } from './outcome.js';

/** So many subjects at most; the oldest go first. */
const MAX_SUBJECTS = 10_000;
/** So many different calls about one subject at most. */
const MAX_PER_SUBJECT = 8;

interface Entry {
  readonly checks: readonly Check[];
  readonly at: number;
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

  /** Leaves the refusal that Redis would answer in the checks, if it is known. @returns its time */
  find(checks: readonly Check[]): number | undefined {
    if (this.#entries.size === 0) return undefined;
    const entry = sameCall(this.#entries.get(checks[0]?.subject.hash ?? ''), checks);
    if (entry === undefined) return undefined;
    const elapsed = Math.floor(this.#now() - entry.taken);
    if (elapsed < 0 || elapsed >= entry.validMs) {
      this.#remove(entry);
      return undefined;
    }
    for (let i = 0; i < checks.length; i += 1) repeat(checks[i], entry.checks[i], elapsed);
    return entry.at + elapsed;
  }

  /** A mark to pass to {@link learn}: what was asked before an own unblock must not be remembered after it. */
  get epoch(): number {
    return this.#epoch;
  }

  /** @param checks that Redis has decided */
  learn(checks: readonly Check[], at: number, blocks: readonly BlockNews[], epoch: number): void {
    if (this.#maxMs === 0) return;
    if (this.#entries.size > 0 && checks.some(({ allowed }) => allowed)) this.#dropAllowed(checks);
    if (blocks.length === 0 || epoch !== this.#epoch) return;
    const isDenied = checks.some(({ shadow, reason }) => !shadow && reason === 'blocked');
    if (!isDenied || !checks.every(({ operation }) => decides(operation))) return;
    // In a test's time the reply's own time counts: the clock may have moved since.
    const taken = this.#clock === undefined ? performance.now() : at;
    const entry: Entry = { checks, at, taken, validMs: this.#validity(checks, blocks) };
    for (const hash of subjectsOf(checks)) this.#put(hash, entry);
  }

  #validity(checks: readonly Check[], blocks: readonly BlockNews[]): number {
    let valid = this.#maxMs;
    for (const { lastsMs } of blocks) valid = Math.min(valid, lastsMs ?? Infinity);
    for (const { reason, retryAfterMs, moreAfterMs } of checks) {
      if (reason === 'blocked') continue;
      // Beyond these, other rules would answer something else, if only a larger `remaining`.
      if (retryAfterMs !== null && retryAfterMs > 0) valid = Math.min(valid, retryAfterMs);
      if (moreAfterMs !== null && moreAfterMs > 0) valid = Math.min(valid, moreAfterMs);
    }
    return valid;
  }

  #put(hash: string, entry: Entry): void {
    const others = (this.#entries.get(hash) ?? []).filter(other => !isSame(other.checks, entry.checks));
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
  drop(checks: readonly Check[]): void {
    this.#epoch += 1;
    if (this.#entries.size === 0) return;
    for (const { rule, subject } of checks) this.dropSubject(subject.hash, [rule.scope]);
  }

  #dropAllowed(checks: readonly Check[]): void {
    // What an allowed call has changed is not what was remembered.
    if (!checks.every(({ shadow, allowed }) => shadow || allowed)) return;
    for (const { rule, subject } of checks) this.dropSubject(subject.hash, [rule.scope]);
  }

  dropSubject(hash: string, scopes?: readonly string[]): void {
    for (const entry of this.#entries.get(hash) ?? []) {
      const speaks = entry.checks.some(
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
    for (const hash of subjectsOf(entry.checks)) {
      const left = this.#entries.get(hash)?.filter(other => other !== entry) ?? [];
      if (left.length === 0) this.#entries.delete(hash);
      else this.#entries.set(hash, left);
    }
  }
}

const subjectsOf = (checks: readonly Check[]): Set<string> =>
  new Set(checks.map(({ subject }) => subject.hash));

// Plain loops: this is all that an attacker's request costs.
function sameCall(entries: readonly Entry[] | undefined, checks: readonly Check[]): Entry | undefined {
  if (entries === undefined) return undefined;
  for (const entry of entries) if (isSame(entry.checks, checks)) return entry;
  return undefined;
}

function isSame(a: readonly Check[], b: readonly Check[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i += 1) if (!isSameQuestion(a[i], b[i])) return false;
  return true;
}

function isSameQuestion(a: Check | undefined, b: Check | undefined): boolean {
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

/** The reading of `earlier`, as it is so many milliseconds later. */
function repeat(check: Check | undefined, earlier: Check | undefined, elapsed: number): void {
  if (check === undefined || earlier === undefined) return;
  check.reason = earlier.reason;
  check.remaining = earlier.remaining;
  check.retryAfterMs = less(earlier.retryAfterMs, elapsed);
  check.moreAfterMs = less(earlier.moreAfterMs, elapsed);
  check.resetAfterMs = less(earlier.resetAfterMs, elapsed);
  check.repeated = true;
}

const less = (wait: number | null, elapsed: number): number | null =>
  wait === null ? null : Math.max(0, wait - elapsed);
