import type { ServerResponse } from 'node:http';
import { isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import { seal } from './seal.js';

/** What is done before a response leaves. None of them may throw, and the work must not take for ever. */
export interface LastWork {
  /**
   * The work itself. What it answers is run last, right before the end, e.g. to write headers.
   *
   * @param answered the handler has answered, or its headers at least have gone out. `false`: the client went away first,
   * and whatever the response says of its status is no answer.
   * @param isOvertaken somebody who came later has put an end of their own before the one that is held.
   */
  readonly work: (answered: boolean, isOvertaken: boolean) => MaybePromise<() => void>;
  /** What the end threw after it was held, when its caller was no longer there to catch it. */
  readonly failed: (error: unknown) => void;
}

/**
 * Does `work` before the response leaves: `res.end` is held until it is done, as session middlewares do when they save.
 * Exactly once: when the response ends, or is closed without an end because the client went away.
 */
export function beforeEnd(res: ServerResponse, { work, failed }: LastWork): void {
  let begun = false;
  const begin = (answered: boolean, isOvertaken = false): MaybePromise<() => void> => {
    if (begun) return () => undefined;
    begun = true;
    return work(answered, isOvertaken);
  };
  if (isGone(res)) {
    // Nothing left to hold.
    void begin(res.headersSent);
    return;
  }
  res.once('close', () => void begin(res.headersSent));

  // Not the prototype's: a compression or session middleware may have put its own there.
  const end = res.end.bind(res) as (...args: unknown[]) => ServerResponse;
  let held = false;
  let hasFailed = false;
  const holdingEnd = (...args: unknown[]): ServerResponse => {
    // An end after one that was held is a handler that answers twice; the first answer stands, as without us.
    if (held) return ignoreEnd(res, args);
    // What Node throws for is thrown to the caller, who still has the time to answer something else.
    if (!isChunk(args[0])) return end(...args);
    const done = begin(true, res.end !== holdingEnd);
    if (!isPromise(done)) {
      done();
      if (hasFailed) return lastEnd(args);
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
        // Now it is an answer that failed, and another may take its place: once.
        held = false;
        hasFailed = true;
        failed(error);
      }
    });
    return res;
  };
  /** The second answer fails, too: nobody is left to tell, and the client must not wait for ever. */
  const lastEnd = (args: unknown[]): ServerResponse => {
    try {
      return end(...args);
    } catch (error) {
      return res.destroy(error as Error);
    }
  };
  res.end = holdingEnd as typeof res.end;
}

/** Ended or closed already. A response of HTTP/2 tells the second by its stream alone. */
function isGone(res: ServerResponse & { readonly stream?: { readonly destroyed?: boolean } }): boolean {
  return res.writableEnded || res.closed || res.destroyed || res.stream?.destroyed === true;
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
