import { errorText } from './error-text.js';
import { isLimitkeeperError, storeError } from './errors.js';
import type { LimitkeeperError } from './errors.js';
import type { Store } from './store.js';

/** What a store threw, rejected with or answered, as an error of ours whose `cause` is the store's own. */
export function storeFailure(store: Store, cause: unknown): LimitkeeperError {
  try {
    if (isLimitkeeperError(cause)) return withCause(cause, store);
    return storeError('ERR_LIMITKEEPER_STORE', `the store failed: ${errorText(cause)}`, { cause });
  } catch {
    return storeError('ERR_LIMITKEEPER_STORE', 'the store failed with something that cannot be read.');
  }
}

export function noResult(checks: number): Error {
  return new Error(
    `it must answer the time, Unix ms, and leave a whole reading in each of ${String(checks)} checks`,
  );
}

/** @param what the option or the call that the deadline belongs to */
export function tooLate(store: Store, timeoutMs: number, what: string): LimitkeeperError {
  const error = storeError(
    'ERR_LIMITKEEPER_STORE_TIMEOUT',
    `the store did not answer within ${String(timeoutMs)} ms (${what}).`,
  );
  return withCause(error, store);
}

/** @param last the failure after which the store is left alone */
export function suspended(last: LimitkeeperError | undefined): LimitkeeperError {
  return storeError(
    'ERR_LIMITKEEPER_STORE_SUSPENDED',
    'the store failed several times in a row and is left alone for a second.',
    { cause: last?.cause ?? last },
  );
}

/**
 * A call that merely had no answer, or could not be sent, was not told why. The store may know: what its connection failed
 * with is the cause.
 */
function withCause(error: LimitkeeperError, store: Store): LimitkeeperError {
  const isUntold = error.code === 'ERR_LIMITKEEPER_STORE' || error.code === 'ERR_LIMITKEEPER_STORE_TIMEOUT';
  if (!isUntold || error.cause !== undefined) return error;
  const cause = lastErrorOf(store);
  return cause === undefined ? error : Object.assign(error, { cause });
}

function lastErrorOf(store: Store): unknown {
  try {
    return store.lastError;
  } catch {
    return undefined;
  }
}
