import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestOutcome } from './types.js';

/** On a response that is the refusal of one of our limiters; known to both copies of the library. */
const REFUSED = Symbol.for('limitkeeper.refused.v2');

/** Marks a response as the refusal of one of our limiters: it says nothing about what the request was. */
export function markRefusal(res: ServerResponse, refused: boolean): void {
  (res as { [REFUSED]?: boolean })[REFUSED] = refused;
}

export function isRefusal(res: ServerResponse): boolean {
  return (res as { [REFUSED]?: boolean })[REFUSED] === true;
}

/**
 * The outcome of a request by its status code, for the option `outcome`: 2xx is a success, 4xx a failure; everything else,
 * and the refusals of limiters, is ignored.
 *
 * A status counts from the moment when the headers have gone out: a video in which the client seeks (206) and a download
 * that they cancel (200) are successes. Of a client that hung up before there were any no outcome is asked; it counts in any
 * case, and is never a success.
 */
export function byStatus(_req: IncomingMessage, res: ServerResponse): RequestOutcome {
  if (isRefusal(res)) return 'ignore';
  const { statusCode } = res;
  if (statusCode >= 200 && statusCode < 300) return 'success';
  return statusCode >= 400 && statusCode < 500 ? 'failure' : 'ignore';
}
