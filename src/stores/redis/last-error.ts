import type { PortState } from './port.js';

/** What is used of any client that keeps a connection. */
interface Emitter {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** Clusters say of one node alone what it failed with: `node error` those of ioredis, `node-error` those of node-redis. */
const FAILURES = ['error', 'node error', 'node-error'];
/** A cluster goes on without one of its nodes, and does not tell when that one is well again. */
const RECENT_MS = 10_000;

/**
 * The last error of a client's connection, until it is ready again. Its user may listen to nothing, and calls that fail
 * meanwhile are not told: they could not be sent, or had no answer.
 */
export class LastError {
  readonly #client: Partial<Emitter>;
  readonly #state: () => PortState;
  readonly #lost = new Error('the connection to Redis was lost');
  #error: unknown;
  #at = -Infinity;

  constructor(client: object, state: () => PortState) {
    this.#client = client;
    this.#state = state;
    for (const event of FAILURES) this.#client.on?.(event, this.#failed);
    this.#client.on?.('close', this.#closed);
    this.#client.on?.('ready', this.#ready);
  }

  get value(): unknown {
    if (this.#error === undefined) return undefined;
    const state = this.#state();
    // Closed by its user.
    if (state === 'ended' && this.#error === this.#lost) return undefined;
    return state === 'ready' && performance.now() - this.#at > RECENT_MS ? undefined : this.#error;
  }

  readonly #failed = (error: unknown): void => {
    // The sentinel client of node-redis also tells in plain words that it has met the error that it then tells.
    if (typeof error !== 'object' || error === null) return;
    // Of all nodes of a cluster none could be asked: the last one's error says why.
    const { lastNodeError } = error as { readonly lastNodeError?: unknown };
    this.#note(lastNodeError ?? error);
  };

  /** Closed by the other end in good order, ioredis tells of no error. */
  readonly #closed = (): void => {
    if (this.#error === undefined) this.#note(this.#lost);
  };

  readonly #ready = (): void => {
    this.#error = undefined;
  };

  #note(error: unknown): void {
    this.#error = error;
    this.#at = performance.now();
  }

  close(): void {
    for (const event of FAILURES) this.#client.off?.(event, this.#failed);
    this.#client.off?.('close', this.#closed);
    this.#client.off?.('ready', this.#ready);
  }
}
