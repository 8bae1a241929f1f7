import { errorText } from '../core/error-text.js';
import { isLimitkeeperError } from '../core/errors.js';
import { isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import { OPERATOR_DEADLINE_MS } from '../core/operator-call.js';
import { refuse } from './reply.js';

const LONGEST_MESSAGE = 200;

/**
 * What the store answers to a question that no limiter's guard stands behind.
 *
 * @param deadlineMs default: five seconds.
 * @throws Refusal 503 where it fails or does not answer in time.
 */
export async function ask<T>(
  question: () => MaybePromise<T>,
  deadlineMs: number = OPERATOR_DEADLINE_MS,
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
    const isWrapped = isLimitkeeperError(error) && error.code === 'ERR_LIMITKEEPER_STORE';
    return storeFailed(errorText(isWrapped ? (error.cause ?? error) : error));
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
