import type { IncomingMessage, ServerResponse } from 'node:http';
import { processWide } from '../core/process-wide.js';
import type { RequestOutcome } from './types.js';

const refusals = processWide('refusals.v1', () => new WeakSet<object>());

/** Marks a response as the refusal of one of our limiters: it says nothing about what the request was. */
export function markRefusal(res: ServerResponse, refused: boolean): void {
  if (refused) refusals.add(res);
  else refusals.delete(res);
}

export function isRefusal(res: ServerResponse): boolean {
  return refusals.has(res);
}

/** The client went away before the response was ended. */
export function isAborted(res: ServerResponse): boolean {
  return !res.writableEnded && (res.closed || res.destroyed);
}

/**
 * The outcome of a request by its status code, for the option `outcome`: 2xx is a success; 4xx, or a client that went away
 * before the answer, a failure; everything else, and the refusals of limiters, is ignored.
 */
export function byStatus(_req: IncomingMessage, res: ServerResponse): RequestOutcome {
  if (isRefusal(res)) return 'ignore';
  if (isAborted(res)) return 'failure';
  const { statusCode } = res;
  if (statusCode >= 200 && statusCode < 300) return 'success';
  return statusCode >= 400 && statusCode < 500 ? 'failure' : 'ignore';
}
