import type { ServerResponse } from 'node:http';
import { isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import { seal } from './seal.js';

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
    // An end after one that was held is a handler that answers twice; the first answer stands, as without us.
    if (held) return ignoreEnd(res, args);
    // What Node throws for is thrown to the caller, who still has the time to answer something else.
    if (!isChunk(args[0])) return end(...args);
    const done = begin();
    if (!isPromise(done)) {
      done();
      return end(...args);
    }
    held = true;
    const unseal = seal(res);
    void done.then(finish => {
      unseal();
      finish();
      try {
        end(...args);
      } catch (error) {
        // Nobody is left to tell, and the client must not wait for ever.
        res.destroy(error as Error);
      }
    });
    return res;
  };
  res.end = holdingEnd as typeof res.end;
}

/** A text, bytes, nothing, or the callback in their place. */
function isChunk(chunk: unknown): boolean {
  return (
    chunk === undefined ||
    chunk === null ||
    typeof chunk === 'string' ||
    typeof chunk === 'function' ||
    chunk instanceof Uint8Array
  );
}

function ignoreEnd(res: ServerResponse, args: readonly unknown[]): ServerResponse {
  const callback = args.find(arg => typeof arg === 'function') as (() => void) | undefined;
  if (callback === undefined) return res;
  if (res.writableFinished || res.closed) process.nextTick(callback);
  else res.once('close', callback);
  return res;
}
