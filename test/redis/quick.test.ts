import { Redis } from 'ioredis';
import type { Operation } from '../../src/core/operation.js';
import type { Rule } from '../../src/core/rule.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { applyBatch } from '../../src/testing/batch.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';
import { consume, rule, subject } from '../support/subjects.js';

jest.setTimeout(30_000);

// The way of the usual call through the script: lua/shared/quick.lua.

let redis: RedisServer;
let client: Redis;
let store: RedisStore;

beforeAll(async () => {
  redis = await startRedis();
  client = new Redis(redis.port);
  store = new RedisStore({ client, denyCacheMs: 0 });
});

afterAll(async () => {
  await store.close();
  client.disconnect();
  await redis.stop();
});

beforeEach(() => redis.call('FLUSHALL'));

const alice = subject('alice');
const KEY = `limits:{${alice.hash}}`;
const SHAPES = [
  { algorithm: 'sliding-window' },
  { algorithm: 'fixed-window' },
  { algorithm: 'fixed-window', align: 'epoch' },
  { algorithm: 'token-bucket' },
  { algorithm: 'leaky-bucket', burst: 3 },
] as const;

const apply = async (of: Rule, operation: Operation = consume(1)) => {
  return (await applyBatch(store, [{ rule: of, subject: alice, operation }])).readings[0]!;
};

/** The commands that the script ran for one call. */
async function commandsOf(call: () => Promise<unknown>): Promise<Record<string, number>> {
  await redis.call('CONFIG', 'RESETSTAT');
  await call();
  const stats = String(await redis.call('INFO', 'commandstats'));
  const counts = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, calls]) => [
    name,
    Number(calls),
  ]);
  const {
    evalsha,
    eval: evaluated,
    get,
    set,
    time,
    pttl,
  } = Object.fromEntries(counts) as Record<string, number>;
  return Object.fromEntries(
    Object.entries({ calls: (evalsha ?? 0) + (evaluated ?? 0), get, set, time, pttl }).filter(
      (entry): entry is [string, number] => entry[1] !== undefined,
    ),
  );
}

describe.each(SHAPES)('one consume of one rule, %p', shape => {
  const ours = rule({ scope: 'quick', limit: 3, windowSec: 3600, ...shape });

  it('reads once and writes once, the first time and later', async () => {
    await apply(ours);
    await redis.call('DEL', KEY);
    for (let i = 0; i < 3; i++) {
      expect(await commandsOf(() => apply(ours))).toEqual({ calls: 1, get: 1, set: 1, time: 1 });
    }
  });

  it('writes nothing when it is refused', async () => {
    for (let i = 0; i < 3; i++) await apply(ours);
    const counts = await commandsOf(() => apply(ours));
    expect(counts).toEqual({ calls: 1, get: 1, pttl: 1, time: 1 });
    expect(await apply(ours)).toMatchObject({ reason: 'limit', allowed: false, remaining: 0 });
  });

  it('keeps the key as long as its state counts', async () => {
    for (let i = 1; i <= 3; i++) {
      const { resetAfterMs } = await apply(ours);
      const kept = Number(await redis.call('PTTL', KEY));
      expect(Math.abs(kept - resetAfterMs!)).toBeLessThan(100);
    }
  });

  it('goes on with what other calls have stored, and they with what it has', async () => {
    await apply(ours);
    await apply(ours, { type: 'charge', units: 1 });
    expect(await apply(ours, { type: 'peek', cost: 1 })).toMatchObject({ reason: 'ok', remaining: 1 });
    await apply(ours, { type: 'reserve', cost: 1 });
    expect(await apply(ours)).toMatchObject({ reason: 'held', remaining: 0 });
    await apply(ours, { type: 'block', ms: 60_000 });
    expect(await apply(ours)).toMatchObject({ reason: 'blocked' });
    await apply(ours, { type: 'reset' });
    expect(await apply(ours)).toMatchObject({ reason: 'ok', remaining: 2 });
  });

  it('minds a counter of another scope and one of another window of the same subject', async () => {
    // Values as long as those of the rule itself.
    await apply(rule({ ...shape, scope: 'quack', limit: 5, windowSec: 3600 }));
    expect((await apply(ours)).remaining).toBe(2);
    await redis.call('DEL', KEY);
    await apply(rule({ ...shape, scope: 'quick', limit: 5, windowSec: 3601 }));
    expect((await apply(ours)).remaining).toBe(2);
    await apply(rule({ ...shape, scope: 'quack', limit: 5, windowSec: 3600 }));
    expect((await apply(ours)).remaining).toBe(1);
    const cells = await store.inspect(alice.hash);
    expect(cells.map(({ scope, cell }) => [scope, cell.counters.length])).toEqual([
      ['quick', 2],
      ['quack', 1],
    ]);
  });

  it('starts the block that follows a refusal', async () => {
    const blocking = rule({ scope: 'quick', limit: 3, windowSec: 3600, blockSec: [60, 600], ...shape });
    for (let i = 0; i < 3; i++) expect((await apply(blocking)).reason).toBe('ok');
    const { reason, retryAfterMs } = await apply(blocking);
    expect([reason, retryAfterMs! >= 60_000]).toEqual(['limit', true]);
    expect((await apply(blocking)).reason).toBe('blocked');
  });

  it('refuses more than the capacity for good, also the first time', async () => {
    expect(await apply(ours, consume(4))).toMatchObject({ reason: 'cost', retryAfterMs: null, remaining: 3 });
    expect(await redis.call('EXISTS', KEY)).toBe(0);
  });
});

it.each(['sliding-window', 'fixed-window', 'token-bucket'] as const)(
  'a key that has lost its expiry gets one, by a refusal and by a new window (%s)',
  async algorithm => {
    const ours = rule({ scope: 'quick', limit: 1, windowSec: 0.3, algorithm });
    await apply(ours);
    await redis.call('PERSIST', KEY);
    expect((await apply(ours)).reason).toBe('limit');
    expect(await redis.call('PTTL', KEY)).toBeGreaterThan(0);
    await redis.call('PERSIST', KEY);
    await new Promise(resolve => setTimeout(resolve, 700));
    expect((await apply(ours)).reason).toBe('ok');
    expect(await redis.call('PTTL', KEY)).toBeGreaterThan(0);
  },
);

it('costs the server less than half of a call that takes the long way', async () => {
  const ours = rule({ scope: 'quick', limit: 1e6 });
  const microseconds = async (operation: Operation): Promise<number> => {
    await redis.call('CONFIG', 'RESETSTAT');
    for (let i = 0; i < 50; i++) await apply(ours, operation);
    const stats = String(await redis.call('INFO', 'commandstats'));
    return Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(stats)?.[1]);
  };
  const [quick, long] = [[], []] as [number[], number[]];
  for (let round = 0; round < 10; round++) {
    quick.push(await microseconds(consume(1)));
    long.push(await microseconds({ type: 'charge', units: 1 }));
  }
  expect(Math.min(...quick)).toBeLessThan(Math.min(...long) / 2);
});

it('a window that follows another is kept for as long as both count', async () => {
  const ours = rule({ scope: 'quick', limit: 100, windowSec: 0.5 });
  await apply(ours);
  await new Promise(resolve => setTimeout(resolve, 600));
  const { resetAfterMs } = await apply(ours);
  expect(Math.abs(Number(await redis.call('PTTL', KEY)) - resetAfterMs!)).toBeLessThan(100);
});

it('counts too large for the short form are counted all the same', async () => {
  for (const algorithm of ['sliding-window', 'token-bucket'] as const) {
    await redis.call('FLUSHALL');
    const huge = rule({ scope: 'quick', limit: 2 ** 42, windowSec: 1, algorithm });
    await apply(huge, consume(2 ** 41));
    expect((await apply(huge, consume(2 ** 40))).remaining).toBeLessThanOrEqual(2 ** 41);
    expect((await apply(huge, consume(2 ** 42))).reason).toBe('limit');
  }
});
