import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';

/**
 * Does `work` before the response leaves: `res.end` is held until it is done, as session middlewares do when they save.
 * What it answers is run last, right before the end, e.g. to write headers. Exactly once: when the response ends, or is
 * closed without an end because the client went away. `work` must not throw or reject, and must not take for ever.
 */
export function beforeEnd(res: ServerResponse, work: () => MaybePromise<() => void>): void {
  let begun = false;
  const begin = (): MaybePromise<() => void> => {
    if (begun) return () => undefined;
    begun = true;
    return work();
  };
  if (res.writableEnded || res.closed || res.destroyed) {
    // Nothing left to hold.
    void begin();
    return;
  }
  res.once('close', () => void begin());

  // Not the prototype's: a compression or session middleware may have put its own there.
  const end = res.end.bind(res) as (...args: unknown[]) => ServerResponse;
  let held = false;
  const holdingEnd = (...args: unknown[]): ServerResponse => {
    // An end while one is held is a handler that answers twice; the first answer stands, as without us.
    if (held) return res;
    const done = begin();
    if (!isPromise(done)) {
      done();
      return end(...args);
    }
    held = true;
    const release = freeze(res);
    void done.then(finish => {
      release();
      finish();
      held = false;
      end(...args);
    });
    return res;
  };
  res.end = holdingEnd as typeof res.end;
}

/**
 * Keeps the response as it is from the moment its handler ended it: what is set or written afterwards (an error handler
 * that takes the response for unanswered) is undone on release.
 */
function freeze(res: ServerResponse): () => void {
  const { statusCode, statusMessage, headersSent } = res;
  const headers: OutgoingHttpHeaders = { ...res.getHeaders() };
  const ownWrite = Object.getOwnPropertyDescriptor(res, 'write');
  res.write = () => false;
  return () => {
    if (ownWrite === undefined) delete (res as { write?: unknown }).write;
    else Object.defineProperty(res, 'write', ownWrite);
    if (headersSent || res.headersSent) return;
    res.statusCode = statusCode;
    res.statusMessage = statusMessage;
    for (const name of res.getHeaderNames()) if (!Object.hasOwn(headers, name)) res.removeHeader(name);
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value);
  };
}
