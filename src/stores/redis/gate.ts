import { storeError } from '../../core/errors.js';
import type { LimitkeeperError } from '../../core/errors.js';
import type { RedisPort } from './port.js';

/** How long a call without a deadline of its own waits for a client that has never been ready. */
const PATIENCE_MS = 5000;
const LOOK_EVERY_MS = 20;

interface Waiter {
  readonly key: string | undefined;
  readonly expires: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Lets a call through only when it can be sent now. A client that was ready and is not makes it fail at once; one that has
 * never been ready is waited for within the call's time, and a lazy one is started.
 */
export class Gate {
  readonly #port: RedisPort;
  #waiters: Waiter[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(port: RedisPort) {
    this.#port = port;
    port.onChange(() => {
      this.#look();
    });
  }

  /**
   * `undefined`: go ahead. Otherwise a promise to wait for, which rejects when it is no use.
   *
   * @param waitMs how long the caller would wait
   */
  enter(key?: string, waitMs = PATIENCE_MS): Promise<void> | undefined {
    const state = this.#port.state(key);
    if (state === 'ready') return undefined;
    if (state !== 'starting') return Promise.reject(unreachable(state));
    this.#port.awake();
    return new Promise((resolve, reject) => {
      this.#waiters.push({
        key,
        expires: performance.now() + Math.min(waitMs, PATIENCE_MS),
        resolve,
        reject,
      });
      // Beside the events: not every state has one (a node of a cluster), and waiters expire.
      this.#timer ??= setInterval(() => {
        this.#look();
      }, LOOK_EVERY_MS).unref();
    });
  }

  #look(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    const now = performance.now();
    for (const waiter of waiters) {
      const state = this.#port.state(waiter.key);
      if (state === 'ready' && now < waiter.expires) waiter.resolve();
      else if (state !== 'starting' || now >= waiter.expires) waiter.reject(unreachable(state));
      else this.#waiters.push(waiter);
    }
    if (this.#waiters.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  close(): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(unreachable('ended'));
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function unreachable(state: string): LimitkeeperError {
  const why =
    state === 'ended'
      ? 'the client has been closed'
      : state === 'starting'
        ? 'the client has not connected yet'
        : 'the client has lost its connection';
  return storeError('ERR_LIMITKEEPER_STORE', `Redis cannot be reached: ${why}.`);
}
