import { isPromise } from './maybe-promise.js';
import type { MaybePromise } from './maybe-promise.js';
import { storeFailure, tooLate } from './store-failure.js';
import type { Store } from './store.js';

/** How long a person, or a process that ends, waits for a store. A decision has its own, shorter deadline. */
export const OPERATOR_DEADLINE_MS = 5000;
/** For what goes through all that a store keeps. */
export const WHOLE_STORE_DEADLINE_MS = 60_000;

/**
 * What a store answers to a call that no guard stands behind. A client without a deadline of its own would hold the answer
 * for ever.
 *
 * @param call its name, for the error
 * @returns rejects with `ERR_LIMITKEEPER_STORE_TIMEOUT`, or with `ERR_LIMITKEEPER_STORE` where the store fails
 */
export async function operatorCall<T>(
  store: Store,
  call: string,
  work: () => MaybePromise<T>,
  deadlineMs: number = OPERATOR_DEADLINE_MS,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const answer = work();
    if (!isPromise(answer)) return answer;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(tooLate(store, deadlineMs, `${call}()`));
      }, deadlineMs).unref();
    });
    return await Promise.race([answer, late]);
  } catch (error) {
    throw storeFailure(store, error);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when the work has ended, however, or when it has taken too long. */
export async function waitAtMost(deadlineMs: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, deadlineMs).unref();
  });
  await Promise.race([Promise.allSettled([work]), late]);
  clearTimeout(timer);
}
