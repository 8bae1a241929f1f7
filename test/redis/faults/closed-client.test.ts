import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createClient, createCluster, createSentinel } from 'redis';
import { createLimiter } from '../../../src/index.js';
import { RedisStore } from '../../../src/stores/redis/index.js';
import { freePort } from '../../support/redis/processes.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { onEnd, server } = stage();

interface Closable {
  readonly client: object;
  readonly isOpen: () => boolean;
  readonly open: () => Promise<unknown>;
  readonly close: () => unknown;
}

const nodeRedis = (client: {
  isOpen: boolean;
  on: (event: 'error', listener: () => void) => unknown;
  connect: () => Promise<unknown>;
  destroy: () => unknown;
}): Closable => {
  client.on('error', () => {});
  return {
    client,
    isOpen: () => client.isOpen,
    open: () => client.connect(),
    close: () => client.destroy(),
  };
};

const socketOf = (port: number) => ({ host: '127.0.0.1', port });

const KINDS: [string, (port: number) => Closable][] = [
  ['node-redis', port => nodeRedis(createClient({ socket: socketOf(port) }))],
  ['a cluster of node-redis', port => nodeRedis(createCluster({ rootNodes: [{ socket: socketOf(port) }] }))],
  [
    'a sentinel of node-redis',
    port => nodeRedis(createSentinel({ name: 'limits', sentinelRootNodes: [socketOf(port)] })),
  ],
  [
    'ioredis',
    port => {
      const client = new Redis({ ...socketOf(port), lazyConnect: true });
      client.on('error', () => {});
      return {
        client,
        // It stays in the state in which it was closed.
        isOpen: () => !['wait', 'end', 'reconnecting'].includes(client.status),
        open: () => client.connect(),
        close: () => {
          client.disconnect();
        },
      };
    },
  ],
];

describe.each(KINDS)('R3: %s that its user closes before it was ever ready', (name, make) => {
  it('stays closed, and decisions fail at once', async () => {
    const port = await freePort();
    const { client, isOpen, open, close } = make(port);
    const limiter = createLimiter({
      scope: 'a',
      limit: 5,
      windowSec: 60,
      store: new RedisStore({ client }),
      storeTimeoutMs: 1_000,
    });
    const messages: string[] = [];
    limiter.on('store-error', ({ error }) => messages.push(error.message));
    open().catch(() => {});
    await limiter.consume('early');
    await Promise.resolve(close()).catch(() => {});
    await wait(300);
    expect(isOpen()).toBe(false);
    const since = performance.now();
    expect((await limiter.consume('late')).degraded).toBe('open');
    expect(performance.now() - since).toBeLessThan(500);
    expect(messages.at(-1)).toContain('the client has been closed');
    const redis = await server({ port });
    await wait(500);
    expect((await limiter.consume('later')).degraded).toBe('open');
    expect(isOpen()).toBe(false);
    if (name !== 'node-redis') return;
    // Opened again by its user, it is used again.
    onEnd(close);
    await open();
    expect((await limiter.consume('again')).degraded).toBeUndefined();
    expect(await redis.call('DBSIZE')).toBe(1);
  });
});

it('R3: a client of node-redis that gave up by itself is tried again', async () => {
  const port = await freePort();
  const own = nodeRedis(createClient({ socket: { ...socketOf(port), reconnectStrategy: false } }));
  onEnd(own.close);
  const store = new RedisStore({ client: own.client });
  const limiter = createLimiter({ scope: 'a', limit: 5, windowSec: 60, store, storeTimeoutMs: 1_000 });
  await own.open().catch(() => {});
  expect((await limiter.consume('early')).degraded).toBe('open');
  await server({ port });
  expect((await limiter.consume('late')).degraded).toBeUndefined();
});
