import type { Check } from '../../src/core/check.js';
import type { Batch, BatchResult } from '../../src/testing/batch.js';

/** The questions of checks as they travel to another process. */
export function plainBatch(checks: readonly Check[]): Batch {
  return checks.map(({ rule, subject: { hash }, operation }) => ({
    rule,
    subject: { hash, partHashes: [] },
    operation,
  }));
}

/** Leaves what another process has decided in the checks. @returns its time */
export function takeResult(checks: readonly Check[], { at, readings, blockStarted }: BatchResult): number {
  readings.forEach((reading, i) => checks[i]?.take(reading, blockStarted.includes(i)));
  return at;
}
