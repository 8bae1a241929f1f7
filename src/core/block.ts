/**
 * The block of one scope for one subject, PURE. A record outlives its block while it still carries strikes: the next
 * automatic block then takes the next rung of the ladder.
 */
export interface Block {
  /** When the block began. */
  readonly since: number;
  /** The first millisecond at which it no longer stands; `null`: it stands for ever. */
  readonly until: number | null;
  /** Set by an operator; `forgive` leaves such a block standing. */
  readonly manual: boolean;
  /** Automatic blocks of a ladder so far. */
  readonly strikes: number;
}

/** Strikes are forgotten this long after blocked-until, whoever set it. */
export const STRIKE_MEMORY_MS = 24 * 60 * 60 * 1000;

export function isStanding(block: Block | undefined, now: number): block is Block {
  return block !== undefined && (block.until === null || now < block.until);
}

/** The first millisecond at which the record says nothing any more; `Infinity` for a block for ever. */
export function blockForgettableAt(block: Block): number {
  if (block.until === null) return Infinity;
  return block.strikes > 0 ? block.until + STRIKE_MEMORY_MS : block.until;
}

function liveStrikes(block: Block | undefined, now: number): number {
  return block !== undefined && now < blockForgettableAt(block) ? block.strikes : 0;
}

/** The automatic block that a refusal (or the last counted failure) starts. `ladder` has at least one rung. */
export function startBlock(block: Block | undefined, ladder: readonly number[], now: number): Block {
  const strikes = liveStrikes(block, now);
  const rung = ladder[Math.min(strikes, ladder.length - 1)] ?? 0;
  // One rung is no ladder: there is nothing to remember once the block is over.
  return { since: now, until: now + rung, manual: false, strikes: ladder.length > 1 ? strikes + 1 : strikes };
}

/** A manual block replaces any that stands; the strikes stay, unless they had lapsed already. */
export function setManualBlock(block: Block | undefined, ms: number | null, now: number): Block {
  return { since: now, until: ms === null ? null : now + ms, manual: true, strikes: liveStrikes(block, now) };
}

/** What a success leaves: a standing manual block, without its strikes. */
export function forgiveBlock(block: Block | undefined, now: number): Block | undefined {
  return isStanding(block, now) && block.manual ? { ...block, strikes: 0 } : undefined;
}
