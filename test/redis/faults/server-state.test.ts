import { setTimeout as wait } from 'node:timers/promises';
import { CLIENTS, type ClientKind } from '../../support/redis/clients.js';
import {
  expectHealthy,
  expectLimitHeld,
  expectNoneDegraded,
  expectPromisesKept,
  figures,
  LIMIT,
  limitersOver,
  load,
  PATIENT_MS,
  recovered,
  report,
  type Subjected,
} from '../../support/redis/load.js';
import type { RedisServer } from '../../support/redis/server.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { server, storeOver } = stage();

async function scene(kind: ClientKind, deadlineMs?: number): Promise<[RedisServer, Subjected]> {
  const redis = await server();
  return [redis, limitersOver(await storeOver(kind.single(redis)), deadlineMs)];
}

const everyoneOnce = (i: number): string => `number ${String(i)}`;

describe.each(CLIENTS)('$name', kind => {
  it('a script that is flushed again and again is sent again, and each request counts once', async () => {
    const [redis, subjected] = await scene(kind, PATIENT_MS);
    const running = load(subjected, { requests: 600 });
    let flushes = 0;
    const loading = new AbortController();
    const flushing = (async () => {
      for (; !loading.signal.aborted; flushes++) {
        await redis.call('SCRIPT', 'FLUSH');
        await wait(5);
      }
    })();
    const outcomes = await running;
    loading.abort();
    await flushing;
    report(`SCRIPT FLUSH under load, ${kind.name}`, outcomes, { flushes });
    expectPromisesKept(outcomes);
    expect(flushes).toBeGreaterThan(50);
    expectNoneDegraded(subjected, outcomes);
    expectLimitHeld(outcomes, true);
  });

  it('a server out of memory that evicts nothing fails every write in time', async () => {
    const [redis, subjected] = await scene(kind);
    await expectHealthy(subjected, 'before');
    await redis.call('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await redis.call('CONFIG', 'SET', 'maxmemory', 1);
    const outcomes = await load(subjected, { subject: everyoneOnce });
    await redis.call('CONFIG', 'SET', 'maxmemory', 0);
    const ms = await recovered(subjected);
    report(`OOM with noeviction, ${kind.name}`, outcomes, { 'recovered after ms': ms.toFixed(0) });
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBe(outcomes.length);
    await expectHealthy(subjected, 'after');
  });

  it('a server that became a replica (READONLY) fails every write in time', async () => {
    const [redis, subjected] = await scene(kind);
    const other = await server();
    await expectHealthy(subjected, 'before');
    await redis.call('REPLICAOF', '127.0.0.1', other.port);
    const outcomes = await load(subjected, { subject: everyoneOnce });
    await redis.call('REPLICAOF', 'NO', 'ONE');
    const ms = await recovered(subjected);
    report(`READONLY, ${kind.name}`, outcomes, { 'recovered after ms': ms.toFixed(0) });
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBe(outcomes.length);
    await expectHealthy(subjected, 'after');
  });

  it('a foreign key under our name is replaced by a healthy one', async () => {
    const [redis, subjected] = await scene(kind, PATIENT_MS);
    await subjected.limiters.open.consume('somebody');
    const [key, ...others] = (await redis.call('KEYS', '*')) as string[];
    expect(others).toEqual([]);
    const type = await redis.call('TYPE', key!);
    const foreign: readonly (readonly [string, ...(string | number)[]])[] = [
      ['SET', key!, 'something else'],
      ['SET', key!, 'something else that goes by itself', 'EX', 1_000],
      ['SET', key!, 42],
      ['RPUSH', key!, 1, 2, 3],
      ['SADD', key!, 'a'],
      ['ZADD', key!, 1, 'a'],
      ['HSET', key!, 'a', 'b', 'load.open', 'c'],
      ['XADD', key!, '*', 'a', 'b'],
    ];
    for (const command of foreign) {
      await redis.call('DEL', key!);
      await redis.call(...command);
      const outcomes = await load(subjected, { requests: 3 * (LIMIT + 10), perSecond: 2_000 });
      report(`foreign key (${command[0]}), ${kind.name}`, outcomes);
      expectPromisesKept(outcomes);
      expectNoneDegraded(subjected, outcomes);
      expectLimitHeld(outcomes, true);
      expect(await redis.call('TYPE', key!)).toBe(type);
      expect(await redis.call('PTTL', key!)).toBeGreaterThan(0);
    }
  });

  it('our own key whose expiry was taken away gets one again, from a refused request too', async () => {
    const [redis, subjected] = await scene(kind, PATIENT_MS);
    await load(subjected, { requests: 3 * (LIMIT + 1), perSecond: 2_000 });
    const [key] = (await redis.call('KEYS', '*')) as string[];
    expect(await redis.call('PERSIST', key!)).toBe(1);
    const outcomes = await load(subjected, { requests: 510, perSecond: 2_000 });
    report(`own key without expiry, ${kind.name}`, outcomes);
    expectPromisesKept(outcomes);
    expectNoneDegraded(subjected, outcomes);
    expectLimitHeld(outcomes);
    expect(await redis.call('PTTL', key!)).toBeGreaterThan(0);
  });
});
