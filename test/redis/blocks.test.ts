import type { Operation } from '../../src/core/operation.js';
import { RuleTemplate } from '../../src/core/rule.js';
import type { BlockPage } from '../../src/core/store.js';
import { hashSubject } from '../../src/core/subject.js';
import { createLimiter } from '../../src/index.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { CLIENTS } from '../support/redis/clients.js';
import type { OpenClient } from '../support/redis/clients.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';
import { applyBatch } from '../../src/testing/batch.js';

jest.setTimeout(30_000);

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(() => redis.stop());

describe('a manual unblock', () => {
  it.each(CLIENTS)(
    'is obeyed by another process within a second, deny cache included ($name)',
    async kind => {
      const open = async () => {
        const opened = kind.single({ port: redis.port });
        await opened.ready;
        const store = new RedisStore({
          client: opened.client,
          prefix: `unblock.${kind.name.replaceAll(' ', '-')}`,
        });
        return {
          opened,
          limiter: createLimiter({ scope: 'api.ip', limit: 5, windowSec: 60, store, storeTimeoutMs: 5_000 }),
        };
      };
      // Two stores with a client each share as little as two processes do.
      const [here, there] = [await open(), await open()];
      await here.limiter.block('mallory', 'forever');
      expect((await there.limiter.consume('mallory')).reason).toBe('blocked');
      expect((await here.limiter.consume('mallory')).reason).toBe('blocked');
      await here.limiter.unblock('mallory');
      const since = performance.now();
      // The process that lifts the block knows at once.
      expect((await here.limiter.consume('mallory')).allowed).toBe(true);
      while (!(await there.limiter.consume('mallory')).allowed) {
        expect(performance.now() - since).toBeLessThan(1_500);
        await new Promise(resolve => setTimeout(resolve, 20));
      }
      for (const { limiter, opened } of [here, there]) {
        await limiter.close();
        opened.close();
      }
    },
  );
});

describe('the list of blocks', () => {
  const rule = new RuleTemplate({ scope: 'login', blockSec: 60 }).at({ limit: 1, windowSec: 60 });
  let opened: OpenClient;
  let now = 1_700_000_000_000;
  let store: RedisStore;

  beforeEach(async () => {
    await redis.call('FLUSHALL');
    opened = CLIENTS[0]!.single({ port: redis.port });
    await opened.ready;
    store = new RedisStore({ client: opened.client, clock: { now: () => now } });
  });

  afterEach(async () => {
    await store.close();
    opened.close();
  });

  const operate = (key: string | string[], operation: Operation) =>
    applyBatch(store, [{ rule, subject: hashSubject(key, {}), operation }]);

  it('is paged without losing or repeating anybody, whatever the count', async () => {
    const hashes = [];
    for (let i = 0; i < 25; i++) {
      await operate(`subject ${String(i)}`, { type: 'block', ms: i % 2 === 0 ? null : 1000 + i });
      hashes.push(hashSubject(`subject ${String(i)}`, {}).hash);
    }
    const seen: string[] = [];
    const sizes: number[] = [];
    let cursor: string | undefined;
    do {
      const page: BlockPage = await store.blocked({ count: 10, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...page.blocks.map(({ subjectHash }) => subjectHash));
      sizes.push(page.blocks.length);
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(seen.sort()).toEqual(hashes.sort());
    expect(Math.max(...sizes)).toBeLessThanOrEqual(10);
  });

  it('leaves out what has ended: by time, by hand, by success, by reset', async () => {
    await operate('by time', { type: 'block', ms: 1000 });
    await operate('by hand', { type: 'block', ms: 60_000 });
    await operate('stays', { type: 'block', ms: 60_000 });
    await operate('by reset', { type: 'block', ms: 60_000 });
    await operate('by success', { type: 'charge', units: 1 });
    expect((await store.blocked()).blocks).toHaveLength(5);
    const since = now;
    now += 1000;
    await operate('by hand', { type: 'unblock' });
    await operate('by success', { type: 'forgive' });
    await store.reset(hashSubject('by reset', {}).hash);
    expect((await store.blocked()).blocks).toEqual([
      {
        subjectHash: hashSubject('stays', {}).hash,
        scope: 'login',
        since,
        until: since + 60_000,
        manual: true,
      },
    ]);
    await store.blocked();
    // What a look found to be over is gone from the list, too.
    expect(await redis.call('ZCARD', 'limits:blocks:{0}:names')).toBe(1);
  });

  it('finds the blocks in which a part occurs', async () => {
    const keys = [['alice', '203.0.113.7'], ['bob', '203.0.113.7'], '203.0.113.7'];
    for (const key of [...keys, '203.0.113.8', ['alice', '203.0.113.8']]) {
      await operate(key, { type: 'block', ms: null });
    }
    const [, part = ''] = hashSubject(['alice', '203.0.113.7'], {}).partHashes;
    const { blocks } = await store.blocked({ part });
    expect(blocks.map(({ subjectHash }) => subjectHash).sort()).toEqual(
      keys.map(key => hashSubject(key, {}).hash).sort(),
    );
  });
});

describe('the deny cache', () => {
  let opened: OpenClient;

  beforeEach(async () => {
    opened = CLIENTS[0]!.single({ port: redis.port });
    await opened.ready;
  });

  afterEach(() => {
    opened.close();
  });

  const commands = async () => Number(await redis.info('total_commands_processed'));

  it('does not hide that Redis is frozen, for all that an attacker is refused from it', async () => {
    const store = new RedisStore({ client: opened.client, prefix: 'deny0', denyCacheMs: 60_000 });
    const limiter = createLimiter({ scope: 'a', limit: 5, windowSec: 60, store, storeTimeoutMs: 100 });
    await limiter.block('mallory', 'forever');
    await limiter.consume('mallory');
    const events: string[] = [];
    for (const name of ['degraded', 'recovered'] as const) limiter.on(name, () => events.push(name));
    redis.freeze();
    let waited = 0;
    let refused = 0;
    try {
      for (let i = 0; i < 20; i++) {
        if (!(await limiter.consume('mallory')).allowed) refused += 1;
        const start = performance.now();
        await limiter.consume(`user ${String(i)}`);
        if (performance.now() - start > 80) waited += 1;
      }
    } finally {
      redis.thaw();
    }
    // Five failures in a row; then the store is left alone, and in that second nobody waits.
    expect(waited).toBe(5);
    expect(refused).toBe(5);
    expect(events).toEqual(['degraded']);
    await store.close();
  });

  it('refuses a blocked subject without asking Redis, with waits that shrink', async () => {
    const store = new RedisStore({ client: opened.client, prefix: 'deny', denyCacheMs: 60_000 });
    const limiter = createLimiter({
      scope: 'a',
      limit: 1,
      windowSec: 60,
      blockSec: 30,
      store,
      storeTimeoutMs: 5_000,
    });
    await limiter.consume('mallory');
    await limiter.consume('mallory');
    const asked = await limiter.consume('mallory');
    const before = await commands();
    await new Promise(resolve => setTimeout(resolve, 50));
    for (let i = 0; i < 100; i++) {
      const { allowed, reason, retryAfterMs, at } = await limiter.consume('mallory');
      expect([allowed, reason]).toEqual([false, 'blocked']);
      expect(retryAfterMs).toBe(asked.retryAfterMs! - (at - asked.at));
      expect(at - asked.at).toBeGreaterThanOrEqual(48);
    }
    // The look at the counter itself counts, too.
    expect((await commands()) - before).toBeLessThanOrEqual(2);
    await store.close();
  });

  it('lets go when the block ends, even in the middle of its span', async () => {
    let now = 1_700_000_000_000;
    const store = new RedisStore({ client: opened.client, prefix: 'deny2', clock: { now: () => now } });
    const limiter = createLimiter({
      scope: 'a',
      limit: 1,
      windowSec: 0.1,
      blockSec: 0.2,
      store,
      storeTimeoutMs: 5_000,
    });
    for (let i = 0; i < 3; i++) await limiter.consume('mallory');
    now += 199;
    expect(await limiter.consume('mallory')).toMatchObject({ allowed: false, retryAfterMs: 1 });
    now += 1;
    expect((await limiter.consume('mallory')).allowed).toBe(true);
    await store.close();
  });

  it('asks every time when it is off', async () => {
    const store = new RedisStore({ client: opened.client, prefix: 'deny3', denyCacheMs: 0 });
    const limiter = createLimiter({ scope: 'a', limit: 5, windowSec: 60, store, storeTimeoutMs: 5_000 });
    await limiter.block('mallory', 60);
    const before = await commands();
    for (let i = 0; i < 20; i++) expect((await limiter.consume('mallory')).reason).toBe('blocked');
    expect((await commands()) - before).toBeGreaterThanOrEqual(20);
    await store.close();
  });
});
