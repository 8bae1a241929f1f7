import type { Reading } from './decision.js';
import type { BatchResult } from './store.js';

/**
 * Is this the answer to a batch of so many items? A store that a user wrote may answer anything, and what is no answer must
 * not end as a crash deep inside a request, or as a header that says NaN.
 */
export function isBatchResult(value: unknown, items: number): value is BatchResult {
  if (typeof value !== 'object' || value === null) return false;
  const { at, readings, blockStarted } = value as Unproven<BatchResult>;
  if (!Number.isSafeInteger(at) || !Array.isArray(readings) || !Array.isArray(blockStarted)) return false;
  if (readings.length !== items) return false;
  for (const reading of readings as unknown[]) if (!isReading(reading)) return false;
  return true;
}

type Unproven<T> = { readonly [K in keyof T]?: unknown };

function isReading(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { allowed, reason, limit, remaining, retryAfterMs, moreAfterMs, resetAfterMs } =
    value as Unproven<Reading>;
  return (
    typeof allowed === 'boolean' &&
    typeof reason === 'string' &&
    Number.isFinite(limit) &&
    Number.isFinite(remaining) &&
    isWait(retryAfterMs) &&
    isWait(moreAfterMs) &&
    isWait(resetAfterMs)
  );
}

const isWait = (value: unknown): boolean => value === null || Number.isFinite(value);
