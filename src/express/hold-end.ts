import type { ServerResponse } from 'node:http';
import { isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import { CloseWatch, isGone } from './gone.js';
import { seal } from './seal.js';
import { standsForSocket } from './web-socket.js';

/**
 * Work that is done before a response leaves. It must not throw or reject, and must not take for ever.
 *
 * @param answered the handler has answered, or its headers at least have gone out. `false`: the client went away first, and
 * whatever the response says of its status is no answer.
 */
export type LastWork = (answered: boolean) => MaybePromise<void>;

/**
 * Asked when the work begins; what it answers is run last, right before the end, e.g. to write headers.
 *
 * @param overlaid a middleware that came later has put an end of its own before ours, and may have sent headers there.
 */
export type Closing = (overlaid: boolean) => () => void;

type End = (...args: unknown[]) => ServerResponse;

/**
 * Does work before a response leaves: `res.end` is held until it is done, as session middlewares do when they save. Exactly
 * once: when the response ends, or is closed without an end because the client went away. One for each response, however
 * much work it has.
 *
 * `open`: nobody has ended the response. `held`: the work is under way. `done`: the end is Node's again. `failed`: the end
 * that was held has thrown.
 */
export class HeldEnd extends CloseWatch {
  readonly #res: ServerResponse;
  readonly #closing: Closing;
  readonly #works: LastWork[] = [];
  #phase: 'open' | 'held' | 'done' | 'failed' = 'open';
  #ours: unknown = undefined;
  #failed: (error: unknown) => void = () => undefined;

  constructor(res: ServerResponse, closing: Closing) {
    super();
    this.#res = res;
    this.#closing = closing;
    if (res.writableEnded || isGone(res)) this.#phase = 'done';
    else this.watch(res);
  }

  /** @param failed takes what the end throws once it was held, when its caller is no longer there to catch it. */
  add(work: LastWork, failed: (error: unknown) => void): void {
    if (this.#phase !== 'open') {
      // Too late to hold anything, e.g. behind a handler that answers and goes on all the same.
      void work(hasAnswered(this.#res) || !isGone(this.#res));
      return;
    }
    this.#works.push(work);
    this.#failed = failed;
    // Once more where somebody has put their own end before ours: a session sends the headers there.
    if (this.#ours === undefined || this.#res.end !== this.#ours) this.#wrap();
  }

  /** The client went away without an end. */
  closed(): void {
    if (this.#phase !== 'open') return;
    this.#phase = 'done';
    this.unwatch();
    void this.#work(hasAnswered(this.#res));
  }

  #wrap(): void {
    const res = this.#res;
    // Not the prototype's: a compression or session middleware may have put its own there.
    const end = res.end.bind(res) as End;
    const ours = (...args: unknown[]): ServerResponse => this.#end(end, args);
    res.end = ours as typeof res.end;
    this.#ours = ours;
  }

  #end(end: End, args: unknown[]): ServerResponse {
    const res = this.#res;
    // An end after one that was held is a handler that answers twice; the first answer stands, as without us.
    if (this.#phase === 'held') return ignoreEnd(res, args);
    if (this.#phase === 'failed') return lastEnd(res, end, args);
    // What Node throws for is thrown to the caller, who still has the time to answer something else.
    if (this.#phase === 'done' || !isChunk(args[0])) return end(...args);
    this.#phase = 'held';
    this.unwatch();
    const finish = this.#closing(res.end !== this.#ours);
    const working = this.#work(hasAnswered(res) || !isGone(res));
    if (working === undefined) {
      this.#phase = 'done';
      finish();
      return end(...args);
    }
    const unseal = seal(res);
    void working.then(() => {
      unseal();
      this.#phase = 'done';
      finish();
      try {
        end(...args);
      } catch (error) {
        this.#fail(error);
      }
    });
    return res;
  }

  #work(answered: boolean): Promise<unknown> | undefined {
    const working: Promise<void>[] = [];
    for (const work of this.#works.splice(0)) {
      const result = work(answered);
      if (isPromise(result)) working.push(result);
    }
    return working.length === 0 ? undefined : Promise.all(working);
  }

  /** Now it is an answer that failed, and another may take its place: once. */
  #fail(error: unknown): void {
    this.#phase = 'failed';
    try {
      this.#failed(error);
    } catch {
      this.#res.destroy(error as Error);
    }
  }
}

/** Its status is known. The handshake of a WebSocket was answered by others, whatever a response that stands for it says. */
function hasAnswered(res: ServerResponse): boolean {
  return res.headersSent || standsForSocket(res);
}

/** The second answer fails, too: nobody is left to tell, and the client must not wait for ever. */
function lastEnd(res: ServerResponse, end: End, args: unknown[]): ServerResponse {
  try {
    return end(...args);
  } catch (error) {
    return res.destroy(error as Error);
  }
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
