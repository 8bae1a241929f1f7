import { Redis } from 'ioredis';
import { RuleTemplate } from '../../src/core/rule.js';
import { hashSubject } from '../../src/core/subject.js';
import { createLimiter } from '../../src/index.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { CLIENTS } from '../support/redis/clients.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';
import { applyBatch } from '../../src/testing/batch.js';

jest.setTimeout(30_000);

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(() => redis.stop());

describe('what is stored', () => {
  it.each([60, 900, 86_400])(
    'takes at most 168 bytes for a subject with one counting rule of %i s',
    async windowSec => {
      const opened = CLIENTS[0]!.single({ port: redis.port });
      await opened.ready;
      const store = new RedisStore({ client: opened.client });
      for (const [scope, most] of [
        ['api.ip', 152],
        ['login.password.email_ip', 168],
      ] as const) {
        const limiter = createLimiter({ scope, limit: 120, windowSec, store, storeTimeoutMs: 5_000 });
        const subject = `measured ${scope} ${String(windowSec)}`;
        const { hash } = hashSubject(subject, {});
        for (let i = 0; i < 100; i++) await limiter.consume(subject);
        const bytes = await redis.call('MEMORY', 'USAGE', `limits:{${hash}}`);
        expect(bytes).toBeGreaterThan(0);
        expect(bytes).toBeLessThanOrEqual(most);
      }
      await store.close();
      opened.close();
    },
  );

  it('lies under the key prefix of the client, whatever its letters', async () => {
    const client = new Redis({ port: redis.port, keyPrefix: 'größe €:' });
    const store = new RedisStore({ client });
    const limiter = createLimiter({ scope: 'a', limit: 2, windowSec: 60, store, storeTimeoutMs: 5_000 });
    const decisions = [await limiter.consume('erin'), await limiter.consume('erin')];
    await store.close();
    client.disconnect();
    expect(decisions.map(({ remaining, degraded }) => [remaining, degraded])).toEqual([
      [1, undefined],
      [0, undefined],
    ]);
    const { hash } = hashSubject('erin', {});
    expect(await redis.call('EXISTS', `größe €:limits:{${hash}}`)).toBe(1);
  });

  it('always has an expiry', async () => {
    await redis.call('FLUSHALL');
    const opened = CLIENTS[0]!.single({ port: redis.port });
    await opened.ready;
    const store = new RedisStore({ client: opened.client });
    const limiter = createLimiter({
      rules: [
        { scope: 'a', limit: 1, windowSec: 60, blockSec: [60, 300] },
        { scope: 'b', limit: 1, windowSec: 60, algorithm: 'token-bucket', mode: 'shadow' },
      ],
      store,
      storeTimeoutMs: 5_000,
    });
    await limiter.consume(['alice', '203.0.113.7']);
    await limiter.consume(['alice', '203.0.113.7']);
    await limiter.block(['bob', '203.0.113.8'], 'forever');
    await limiter.reserve('carol');
    await limiter.charge('dave', 5);
    await store.blocked();
    const keys = (await redis.call('KEYS', '*')) as string[];
    // Four subjects, and lists of blocks in two sorted sets each: one of all, and one for each of four parts.
    expect(keys).toHaveLength(4 + 2 + 4 * 2);
    for (const key of keys) expect(await redis.call('PTTL', key)).toBeGreaterThan(0);
    await store.close();
    opened.close();
  });
});

describe('what nobody of us has written', () => {
  const rule = new RuleTemplate({ scope: 'a' }).at({ limit: 1, windowSec: 60 });
  const subject = hashSubject('healed', {});
  const key = `limits:{${subject.hash}}`;
  const consume = { rule, subject, operation: { type: 'consume', cost: 1 } } as const;

  it.each([
    ['a list', ['RPUSH', key, 'x']],
    ['text', ['SET', key, 'hello']],
    ['a cell of a later format', ['SET', key, '\u0002']],
    ['half a cell', ['SET', key, '\u0001\u0001']],
  ])('%s under a key of ours counts as nothing, and goes with the next unit', async (_, write) => {
    await redis.call('DEL', key);
    await redis.call(...write);
    const opened = CLIENTS[0]!.single({ port: redis.port });
    await opened.ready;
    const store = new RedisStore({ client: opened.client });
    const verdicts = [];
    for (let i = 0; i < 2; i++) verdicts.push((await applyBatch(store, [consume])).readings[0]?.reason);
    expect(verdicts).toEqual(['ok', 'limit']);
    expect(await redis.call('PTTL', key)).toBeGreaterThan(0);
    await store.close();
    opened.close();
  });

  it('a key of ours that has lost its expiry gets one, also by a refusal', async () => {
    await redis.call('DEL', key);
    const opened = CLIENTS[0]!.single({ port: redis.port });
    await opened.ready;
    const store = new RedisStore({ client: opened.client });
    await applyBatch(store, [consume]);
    await redis.call('PERSIST', key);
    expect(await redis.call('PTTL', key)).toBe(-1);
    expect((await applyBatch(store, [consume])).readings[0]?.reason).toBe('limit');
    // A unit of a sliding window fades within two windows.
    expect(await redis.call('PTTL', key)).toBeGreaterThan(100_000);
    expect(await redis.call('PTTL', key)).toBeLessThanOrEqual(120_000);
    await store.close();
    opened.close();
  });
});

it('a store for each of many limiters puts no more listeners on the client than one', async () => {
  const opened = CLIENTS[0]!.single({ port: redis.port });
  await opened.ready;
  const client = opened.client as Redis;
  const before = client.eventNames().reduce((sum, name) => sum + client.listenerCount(name), 0);
  const first = new RedisStore({ client });
  const one = client.eventNames().reduce((sum, name) => sum + client.listenerCount(name), 0);
  const others = Array.from({ length: 20 }, () => new RedisStore({ client }));
  expect(client.eventNames().reduce((sum, name) => sum + client.listenerCount(name), 0)).toBe(one);
  for (const store of [first, ...others]) await store.close();
  expect(client.eventNames().reduce((sum, name) => sum + client.listenerCount(name), 0)).toBe(before);
  opened.close();
});
