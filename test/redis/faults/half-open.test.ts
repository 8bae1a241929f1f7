import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import * as five from 'ioredis';
import * as six from 'ioredis6';
import { createClient } from 'redis';
import { createLimiter } from '../../../src/index.js';
import { RedisStore } from '../../../src/stores/redis/index.js';
import { codeBlocks, readMarkdown } from '../../support/markdown.js';
import { clientKind, type OpenClient } from '../../support/redis/clients.js';
import { startCluster } from '../../support/redis/cluster.js';
import { type Proxy, startProxy } from '../../support/redis/proxy.js';
import { stage } from '../../support/redis/stage.js';
import { runSnippet } from '../../support/snippet.js';

jest.setTimeout(60_000);
const { onEnd, server, storeOver } = stage();

/** A second until the silence is noticed, one until the breaker asks again, and as much for a busy machine. */
const RECOVERED_MS = 6_000;

const limiterOver = (store: RedisStore) =>
  createLimiter({ scope: 'a', limit: 1_000_000, windowSec: 3_600, algorithm: 'fixed-window', store });

type Limiter = ReturnType<typeof limiterOver>;

/** Asks until Redis answers again; how long that took. */
async function recovery(limiter: Limiter, subjects = ['x'], giveUpMs = 15_000): Promise<number> {
  const since = performance.now();
  const missing = new Set(subjects);
  while (missing.size > 0) {
    expect(performance.now() - since).toBeLessThan(giveUpMs);
    await Promise.all(
      [...missing].map(async subject => {
        if ((await limiter.consume(subject)).degraded === undefined) missing.delete(subject);
      }),
    );
    await wait(50);
  }
  return performance.now() - since;
}

async function behindProxy(name: string, options?: object): Promise<[Proxy, Limiter, RedisStore]> {
  const proxy = await startProxy((await server()).port);
  onEnd(() => proxy.close());
  const store = await storeOver(clientKind(name).single({ port: proxy.port }, false, options));
  const limiter = limiterOver(store);
  for (let i = 0; i < 5; i++) expect((await limiter.consume('x')).degraded).toBeUndefined();
  return [proxy, limiter, store];
}

describe.each(['ioredis 5', 'ioredis 6'])('R1: %s', name => {
  it('leaves a connection that has gone dead without a word', async () => {
    const [proxy, limiter] = await behindProxy(name);
    proxy.drop();
    expect((await limiter.consume('x')).degraded).toBe('open');
    expect(await recovery(limiter)).toBeLessThan(RECOVERED_MS);
    // The client's new one, and none of a probe.
    await wait(300);
    expect(proxy.connections).toBe(1);
  });

  it('leaves it also where nothing but an operator asks', async () => {
    const [proxy, , store] = await behindProxy(name);
    proxy.drop();
    const asked = store.inspect('a1'.repeat(32)).catch((error: unknown) => error);
    expect(String(await asked)).toContain('the connection to Redis was lost');
    await wait(300);
    expect(await store.inspect('a1'.repeat(32))).toEqual([]);
  });

  it('keeps one that is only slow', async () => {
    const [proxy, limiter] = await behindProxy(name);
    proxy.replyDelayMs = 700;
    for (let i = 0; i < 30; i++) {
      await limiter.consume('x');
      await wait(50);
    }
    proxy.replyDelayMs = 0;
    await recovery(limiter);
    expect(proxy.connections).toBe(1);
  });

  it("does not cut the application's own blocking command", async () => {
    const redis = await server();
    const opened = clientKind(name).single({ port: redis.port }, false, {
      autoResendUnfulfilledCommands: false,
    });
    const limiter = limiterOver(await storeOver(opened));
    await limiter.consume('x');
    const popped = (opened.client as five.Redis).blpop('list', 4);
    const since = performance.now();
    while (performance.now() - since < 3_000) {
      await limiter.consume('x');
      await wait(50);
    }
    await redis.call('RPUSH', 'list', 'mine');
    expect(await popped).toEqual(['list', 'mine']);
    await recovery(limiter);
  });

  it('keeps the connections of a server that is frozen', async () => {
    const redis = await server();
    const limiter = limiterOver(await storeOver(clientKind(name).single({ port: redis.port })));
    for (let i = 0; i < 5; i++) await limiter.consume('x');
    const before = await redis.info('total_connections_received');
    redis.freeze();
    onEnd(() => {
      redis.thaw();
    });
    const since = performance.now();
    while (performance.now() - since < 4_000) {
      await limiter.consume('x', { cost: 100 });
      await wait(50);
    }
    redis.thaw();
    expect(await recovery(limiter)).toBeLessThan(3_000);
    // It was probed a few times, and the client itself never left.
    const probes = Number(await redis.info('total_connections_received')) - Number(before);
    expect(probes).toBeGreaterThan(0);
    expect(probes).toBeLessThan(5);
    // Those of before and the one of the recovery, and what came within the tolerance of a second.
    const { remaining } = await limiter.peek('x');
    expect(1_000_000 - (remaining ?? 0)).toBeLessThan(700);
  });

  it('a node of a cluster', async () => {
    const cluster = await startCluster({ masters: 3, replicas: 0 });
    onEnd(() => cluster.stop());
    const proxies = await Promise.all(cluster.nodes.map(({ port }) => startProxy(port)));
    proxies.forEach(proxy => {
      onEnd(() => proxy.close());
    });
    const natMap = Object.fromEntries(
      cluster.nodes.map(({ port }, i) => [
        `127.0.0.1:${String(port)}`,
        { host: '127.0.0.1', port: proxies[i]!.port },
      ]),
    );
    const { Cluster } = name === 'ioredis 5' ? five : (six as unknown as typeof five);
    const client = new Cluster([{ host: '127.0.0.1', port: proxies[0]!.port }], { natMap });
    client.on('error', () => {});
    const opened: OpenClient = {
      client,
      ready: new Promise(resolve => client.once('ready', resolve)),
      close: () => {
        client.disconnect();
      },
    };
    const limiter = limiterOver(await storeOver(opened));
    const subjects = Array.from({ length: 30 }, (_, i) => `number ${String(i)}`);
    await recovery(limiter, subjects);
    for (const proxy of proxies) proxy.drop();
    await Promise.all(subjects.map(subject => limiter.consume(subject)));
    expect(await recovery(limiter, subjects)).toBeLessThan(2 * RECOVERED_MS);
  });
});

// It has no public way to leave a connection; docs/redis.md says what an application can do, in code that is run here.
it('R1: node-redis 6 leaves it by what the docs say, and keeps one that is idle', async () => {
  const redis = await server();
  const proxy = await startProxy(redis.port);
  onEnd(() => proxy.close());
  const [block] = codeBlocks(readMarkdown('docs/redis.md')).filter(({ code }) =>
    code.includes('pingInterval'),
  );
  let client: ReturnType<typeof createClient> | undefined;
  // Its own client would go to the usual port.
  await runSnippet(block!.code.replace("import { createClient } from 'redis';", ''), {
    createClient: ({ pingInterval }: { pingInterval: number }) =>
      (client = createClient({ socket: { host: '127.0.0.1', port: proxy.port }, pingInterval })),
    console: { error: () => {} },
  });
  onEnd(() => client!.destroy());
  const limiter = limiterOver(new RedisStore({ client: client! }));
  expect((await limiter.consume('x')).degraded).toBeUndefined();
  const before = await redis.info('total_connections_received');
  await wait(6_000);
  expect((await limiter.consume('x')).degraded).toBeUndefined();
  expect(await redis.info('total_connections_received')).toBe(before);
  proxy.drop();
  expect((await limiter.consume('x')).degraded).toBe('open');
  expect(await recovery(limiter)).toBeLessThan(2 * RECOVERED_MS);
});
