/**
 * What may be done to a cell, as data. Costs and units are whole numbers ≥ 0.
 *
 * `consume`, `peek` and `reserve` decide: a call is all or nothing over them. The others always take effect.
 */
export type Operation =
  | { readonly type: 'consume' | 'peek' | 'reserve'; readonly cost: number }
  /** Ends a reservation made at `at`: `held` units come off the holds of its lapse time, then `actual` are charged. */
  | { readonly type: 'settle'; readonly at: number; readonly held: number; readonly actual: number }
  | { readonly type: 'charge'; readonly units: number }
  /** Gives back `units` that a consume at time `at` took. The caller has bounded them by what it took. */
  | { readonly type: 'refund'; readonly at: number; readonly units: number }
  /** `ms`: `null` for ever. */
  | { readonly type: 'block'; readonly ms: number | null }
  | { readonly type: 'unblock' | 'reset' | 'forgive' };

/** A subject as stores see it: hashes only. */
export interface HashedSubject {
  /** SHA-256 or HMAC-SHA-256, 64 lower-case hex digits. */
  readonly hash: string;
  /** The hash of each part alone, for the index of blocks. Worked out when first read: most requests never need it. */
  readonly partHashes: readonly string[];
}

/** `{ type: 'peek', cost: 0 }`: how things stand, for operations that ask nothing. */
export const LOOK: Operation = { type: 'peek', cost: 0 };

export function decides(operation: Operation): operation is Extract<Operation, { cost: number }> {
  return operation.type === 'consume' || operation.type === 'peek' || operation.type === 'reserve';
}
