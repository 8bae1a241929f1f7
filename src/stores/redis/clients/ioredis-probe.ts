import { noop } from './ioredis-client.js';
import type { IoredisClient } from './ioredis-client.js';

/** Who answers there: `unknown` does not say what it is. */
export type Answer = 'master' | 'replica' | 'unknown';

const PATIENCE_MS = 2000;
const ASK_AGAIN_MS = 1000;
/** The wait doubles up to this, so that a fault that lasts costs the server a connection every few seconds. */
const SELDOM_MS = 4000;
const FORGOTTEN_MS = 60_000;

/**
 * Makes a client connect anew, but only where that cures something: a connection of the probe's own, made by the client's own
 * options (its address, its Sentinels, its password), finds out first who answers there now. Until then the application's
 * commands on the client go on as they are.
 */
export class Reconnector {
  readonly #client: IoredisClient;
  #askedAt = -Infinity;
  #waitMs = ASK_AGAIN_MS;
  #probe: IoredisClient | undefined;
  #isClosed = false;

  constructor(client: IoredisClient) {
    this.#client = client;
  }

  /** @param cures is the answer one that a new connection would help with? Asked once the answer is there. */
  consider(cures: (answer: Answer) => boolean): void {
    const now = performance.now();
    const since = now - this.#askedAt;
    if (this.#probe !== undefined || this.#isClosed || since < this.#waitMs) return;
    this.#waitMs = since > FORGOTTEN_MS ? ASK_AGAIN_MS : Math.min(2 * this.#waitMs, SELDOM_MS);
    this.#askedAt = now;
    const { stream } = this.#client;
    this.#ask().then(answer => {
      if (answer === undefined || this.#isClosed || this.#client.stream !== stream || !cures(answer)) return;
      this.#client.disconnect(true);
      // A connection that is dead never answers the farewell.
      stream?.destroy?.();
    }, noop);
  }

  async #ask(): Promise<Answer | undefined> {
    const probe = this.#client.duplicate?.({
      lazyConnect: true,
      // It warns on the console where INFO is denied.
      enableReadyCheck: false,
      enableOfflineQueue: true,
      autoResubscribe: false,
      readOnly: false,
      connectTimeout: PATIENCE_MS,
      retryStrategy: () => null,
      sentinelRetryStrategy: () => null,
      reconnectOnError: null,
    });
    if (probe === undefined) return undefined;
    this.#probe = probe;
    probe.on('error', noop);
    const timer = setTimeout(() => {
      end(probe);
    }, PATIENCE_MS).unref();
    try {
      await probe.connect();
      const info = await probe.info?.('replication').catch((error: unknown) => {
        // It answers, be it to deny INFO; an error of the client itself is no answer.
        if (error instanceof Error && error.name === 'ReplyError') return '';
        throw error;
      });
      const role = /^role:(\w+)/m.exec(info ?? '')?.[1];
      return role === 'master' ? 'master' : role === undefined ? 'unknown' : 'replica';
    } catch {
      return undefined;
    } finally {
      clearTimeout(timer);
      end(probe);
      this.#probe = undefined;
    }
  }

  close(): void {
    this.#isClosed = true;
    if (this.#probe !== undefined) end(this.#probe);
  }
}

function end(probe: IoredisClient): void {
  probe.disconnect();
  probe.stream?.destroy?.();
}
