import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { CLIENTS, clientKind, type OpenClient } from '../../support/redis/clients.js';
import {
  expectHealthy,
  expectLimitHeld,
  expectPromisesKept,
  figures,
  limitersOver,
  load,
  type Outcome,
  recovered,
  report,
  type Subjected,
} from '../../support/redis/load.js';
import type { RedisServer } from '../../support/redis/server.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { server, storeOver } = stage();

async function killAndRestart(redis: RedisServer, subjected: Subjected, what: string): Promise<void> {
  await expectHealthy(subjected, 'before');
  const running = load(subjected, { requests: 900, perSecond: 360 });
  await wait(400);
  const killedAt = performance.now();
  await redis.kill();
  await wait(1_200);
  const restartedAt = performance.now();
  await redis.restart();
  const outcomes = await running;
  const ms = await recovered(subjected);
  const span = (from: number, to: number): readonly Outcome[] =>
    outcomes.filter(({ startedAt }) => startedAt >= from && startedAt < to);
  const down = span(killedAt, restartedAt);
  report(what, outcomes, {
    'while down': figures(down).degraded,
    'max while down': figures(down).max.toFixed(1),
    'recovered after ms': ms.toFixed(0),
  });
  expectPromisesKept(outcomes);
  expect(figures(down).degraded).toBe(down.length);
  // The count went with the server: each of its lives holds the limit by itself.
  expectLimitHeld(span(0, killedAt));
  expectLimitHeld(span(killedAt, Infinity));
  await expectHealthy(subjected, 'after');
}

async function scene(open: (redis: RedisServer) => OpenClient): Promise<[RedisServer, Subjected]> {
  const redis = await server();
  return [redis, limitersOver(await storeOver(open(redis)))];
}

describe('a Redis that is killed and restarted under load', () => {
  it.each(CLIENTS)('costs $name no request and no more than the count', async kind => {
    const [redis, subjected] = await scene(at => kind.single(at));
    await killAndRestart(redis, subjected, `killed and restarted, ${kind.name}`);
  });

  // What people set, and what is known to keep commands waiting for ever.
  it.each([
    ['ioredis 5', { maxRetriesPerRequest: null, enableAutoPipelining: true }],
    ['ioredis 6', { enableOfflineQueue: false, maxRetriesPerRequest: null }],
    ['node-redis 6', { disableOfflineQueue: true, RESP: 2 }],
  ])('does not depend on the options of %s: %j', async (name, options) => {
    const [redis, subjected] = await scene(at => clientKind(name).single(at, false, options));
    await killAndRestart(redis, subjected, `killed and restarted, ${name} ${JSON.stringify(options)}`);
  });
});
