import { RedisStore, type RedisStoreOptions } from '../../../src/stores/redis/index.js';
import type { OpenClient } from './clients.js';
import { type RedisOptions, type RedisServer, startRedis } from './server.js';

/** What a test of faults sets up, and what ends with it. */
export interface Stage {
  /** Called back after the test that is running, the last first. */
  onEnd(end: () => unknown): void;
  server(options?: RedisOptions): Promise<RedisServer>;
  /** A store over a client, once that says that it is ready. */
  storeOver(opened: OpenClient, options?: Omit<RedisStoreOptions, 'client'>): Promise<RedisStore>;
}

/** Made once a file, at its top. */
export function stage(): Stage {
  const ends: (() => unknown)[] = [];
  const onEnd = (end: () => unknown): void => {
    ends.push(end);
  };
  afterEach(async () => {
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) await end();
  });
  return {
    onEnd,
    async server(options) {
      const redis = await startRedis(options);
      onEnd(() => redis.stop());
      return redis;
    },
    async storeOver(opened, options) {
      onEnd(opened.close);
      await opened.ready;
      return new RedisStore({ client: opened.client, ...options });
    },
  };
}
