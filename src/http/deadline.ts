import { isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import { refuse } from './reply.js';

/** How long a person waits for a store: a client without a timeout of its own would hold the answer for ever. */
const STORE_DEADLINE_MS = 5000;
const LONGEST_MESSAGE = 200;

/**
 * What the store answers to a question that no limiter's guard stands behind.
 *
 * @param deadlineMs default: five seconds.
 * @throws Refusal 503 where it fails or does not answer in time.
 */
export async function ask<T>(
  question: () => MaybePromise<T>,
  deadlineMs: number = STORE_DEADLINE_MS,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const answer = question();
    if (!isPromise(answer)) return answer;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`no answer within ${String(deadlineMs)} ms`));
      }, deadlineMs).unref();
    });
    return await Promise.race([answer, late]);
  } catch (error) {
    return storeFailed(error instanceof Error ? error.message : 'unknown error');
  } finally {
    clearTimeout(timer);
  }
}

/** Stores know subjects as hashes only, so what they say may be shown to whoever may see hashes. */
export function storeFailed(message: string, more: Readonly<Record<string, unknown>> = {}): never {
  return refuse(
    503,
    `The store did not do as asked (${message.slice(0, LONGEST_MESSAGE)}). Try again when it is back.`,
    more,
    { 'Retry-After': '1' },
  );
}
