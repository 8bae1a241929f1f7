import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from '@upstash/redis';
import { RedisStore } from '../../../src/stores/redis/index.js';
import {
  DEADLINE_MS,
  expectHealthy,
  expectPromisesKept,
  figures,
  limitersOver,
  load,
  recovered,
  report,
  type Subjected,
} from '../../support/redis/load.js';
import type { RedisServer } from '../../support/redis/server.js';
import { stage } from '../../support/redis/stage.js';
import { type UpstashEndpoint, upstashEndpoint } from '../../support/redis/upstash.js';

jest.setTimeout(60_000);
const { onEnd, server } = stage();

interface Scene {
  readonly redis: RedisServer;
  readonly endpoint: UpstashEndpoint;
  readonly subjected: Subjected;
}

async function scene(): Promise<Scene> {
  const redis = await server();
  const endpoint = await upstashEndpoint(redis.port);
  onEnd(() => endpoint.close());
  // With the SDK's own retries, which go on for seconds.
  const client = new Redis({ url: endpoint.url, token: endpoint.token });
  return { redis, endpoint, subjected: limitersOver(new RedisStore({ client })) };
}

describe('@upstash/redis', () => {
  it('an endpoint that refuses connections is missed; what its SDK sends again late counts nothing', async () => {
    const { endpoint, subjected } = await scene();
    await expectHealthy(subjected, 'before');
    const refusedAt = performance.now();
    await endpoint.refuse();
    const running = load(subjected, { requests: 900, perSecond: 360, subject: i => `number ${String(i)}` });
    await wait(2_000);
    await endpoint.accept();
    const outcomes = await running;
    const ms = await recovered(subjected);
    // The SDK's last attempts come 4.3 s after the first.
    await wait(Math.max(0, refusedAt + 5_500 - performance.now()));
    const early = outcomes.filter(({ startedAt }) => startedAt < refusedAt + 500);
    const cells = await Promise.all(early.map(({ subject }) => subjected.limiters.open.inspect(subject)));
    const counted = cells.filter(list => list.length > 0).length;
    report('connection refused, @upstash/redis', outcomes, {
      'early ones counted late': counted,
      'recovered after ms': ms.toFixed(0),
    });
    expectPromisesKept(outcomes);
    expect(figures(early).degraded).toBe(early.length);
    expect(counted).toBe(0);
    await expectHealthy(subjected, 'after');
  });

  it('answers slower than the deadline are not waited for', async () => {
    const { endpoint, subjected } = await scene();
    await expectHealthy(subjected, 'before');
    endpoint.delayMs = 2.5 * DEADLINE_MS;
    const outcomes = await load(subjected, { perSecond: 360 });
    endpoint.delayMs = 0;
    const ms = await recovered(subjected);
    report('answers slower than the deadline, @upstash/redis', outcomes, {
      'recovered after ms': ms.toFixed(0),
    });
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBe(outcomes.length);
    await expectHealthy(subjected, 'after');
  });

  it('a frozen Redis behind the endpoint, and a script flushed, are got over', async () => {
    const { redis, subjected } = await scene();
    await expectHealthy(subjected, 'before');
    redis.freeze();
    const outcomes = await load(subjected, { perSecond: 360, subject: i => `number ${String(i)}` });
    redis.thaw();
    await redis.call('SCRIPT', 'FLUSH');
    const ms = await recovered(subjected);
    report('frozen behind the endpoint, @upstash/redis', outcomes, { 'recovered after ms': ms.toFixed(0) });
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBe(outcomes.length);
    await expectHealthy(subjected, 'after');
  });

  it('a wrong token fails every call in time', async () => {
    const { endpoint } = await scene();
    const client = new Redis({ url: endpoint.url, token: 'wrong' });
    const outcomes = await load(limitersOver(new RedisStore({ client })));
    report('wrong token, @upstash/redis', outcomes);
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBe(outcomes.length);
  });
});
