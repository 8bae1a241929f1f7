import type { AlgorithmName } from '../algorithms/index.js';
import type { Reading } from '../core/decision.js';

/** A rule of a vector, in milliseconds. */
export interface VectorRule {
  readonly scope: string;
  readonly algorithm: AlgorithmName;
  readonly limit: number;
  readonly windowMs: number;
  readonly burst?: number;
  readonly align?: 'first-hit' | 'epoch';
  /** A duration, or the rungs of a ladder; `null` or left out: no block. */
  readonly blockMs?: number | readonly number[] | null;
  readonly holdMs: number;
  readonly shadow?: boolean;
}

/** For every rule alike, or by scope; a scope left out costs 1. */
export type VectorCost = number | Readonly<Record<string, number>>;

/** One step: an operation on every rule of the case, at a time. */
export interface VectorStep {
  readonly op:
    | 'consume'
    | 'peek'
    | 'reserve'
    | 'settle'
    | 'charge'
    | 'refund'
    | 'block'
    | 'unblock'
    | 'reset'
    | 'forgive';
  /** The clock's time, Unix ms. */
  readonly now: number;
  readonly cost?: VectorCost;
  /** Settle and refund: the index of the step whose receipt is meant. */
  readonly of?: number;
  /** Block: its length; `null`: for ever. */
  readonly blockMs?: number | null;
  /** For an operation that decides nothing: what `peek(0)` answers right after it. */
  readonly expect: {
    readonly allowed: boolean;
    /** In the order of the rules. */
    readonly readings: readonly Omit<Reading, 'scope'>[];
  };
}

/** A sequence of steps with the values that every store must answer. All its rules count one subject. */
export interface VectorCase {
  readonly name: string;
  readonly rules: readonly VectorRule[];
  readonly steps: readonly VectorStep[];
}

/** One value that came out otherwise. */
export interface Mismatch {
  /** The name of the case. */
  readonly case: string;
  /** The index of the step. */
  readonly step: number;
  /** What differs, e.g. `readings[0].remaining`; `error` where the store threw. */
  readonly path: string;
  readonly expected: unknown;
  readonly actual: unknown;
}
