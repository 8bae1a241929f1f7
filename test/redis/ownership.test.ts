import { Redis } from 'ioredis';
import { hashSubject } from '../../src/core/subject.js';
import { createLimiter } from '../../src/index.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { CLIENTS } from '../support/redis/clients.js';
import type { OpenClient } from '../support/redis/clients.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';

jest.setTimeout(30_000);

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});

beforeEach(() => redis.call('FLUSHALL'));

afterAll(() => redis.stop());

const HASH = 'a1'.repeat(32);
/** Names that begin as ours do, each with what is wrong with it. */
const foreign = (prefix: string): string[] => [
  prefix,
  `${prefix}:`,
  `${prefix}:settings`,
  `${prefix}:{settings}`,
  `${prefix}:${HASH}`,
  `${prefix}:{${HASH}}:more`,
  `${prefix}:{${HASH}0}`,
  `${prefix}:{${HASH.toUpperCase()}}`,
  `${prefix}:blocks`,
  `${prefix}:blocks:{0}`,
  `${prefix}:blocks:{10}:ends`,
  `${prefix}:blocks:{0}:ends:old`,
  `${prefix}:part:{x}:names`,
  `${prefix}:staging:{${HASH}}\n`,
  `x${prefix}:{${HASH}}`,
];

const kinds: [string, string, () => OpenClient][] = [
  ...CLIENTS.map((kind): [string, string, () => OpenClient] => [
    kind.name,
    '',
    () => kind.single({ port: redis.port }),
  ]),
  [
    'ioredis with a key prefix full of wildcards',
    'a*p[p]?\\^.+:',
    () => {
      const client = new Redis({ port: redis.port, keyPrefix: 'a*p[p]?\\^.+:' });
      return {
        client,
        ready: new Promise(done => client.once('ready', done)),
        close: () => client.disconnect(),
      };
    },
  ],
];

describe.each(kinds)('S8: only keys of our own exact form are touched: %s', (_, keyPrefix, open) => {
  let opened: OpenClient;

  beforeEach(async () => {
    opened = open();
    await opened.ready;
  });

  afterEach(() => opened.close());

  const setForeign = async (prefix: string): Promise<string[]> => {
    const keys = foreign(keyPrefix + prefix);
    // What the prefix would match if it were read as wildcards.
    if (keyPrefix !== '') keys.push(`aXp[p]Y\\^.+:${prefix}:{${HASH}}`, `axpp?\\^..:${prefix}:{${HASH}}`);
    for (const key of keys) await redis.call('SET', key, 'mine');
    return keys;
  };

  it.each([
    ['clear()', undefined],
    ['clear() of scopes', ['a']],
  ])('%s', async (__, scopes) => {
    const stores = ['limits', 'limits:staging', 'limits2', 'limits:blocks', 'limits:part'].map(
      prefix => new RedisStore({ client: opened.client, prefix, denyCacheMs: 0 }),
    );
    const limiters = stores.map(store =>
      createLimiter({ scope: 'a', limit: 1, windowSec: 60, blockSec: 600, store, storeTimeoutMs: 5_000 }),
    );
    for (const limiter of limiters) {
      await limiter.consume(['alice', '203.0.113.7']);
      await limiter.consume(['alice', '203.0.113.7']);
    }
    const keys = await setForeign('limits');
    for (const store of stores) expect((await store.blocked()).blocks).toHaveLength(1);

    const [own] = stores;
    await own!.clear(scopes);
    expect((await own!.blocked()).blocks).toEqual([]);
    expect((await limiters[0]!.peek(['alice', '203.0.113.7'])).reason).toBe('ok');
    for (const store of stores.slice(1)) expect((await store.blocked()).blocks).toHaveLength(1);
    for (const limiter of limiters.slice(1)) {
      expect((await limiter.peek(['alice', '203.0.113.7'])).reason).toBe('blocked');
    }
    expect(await redis.call('EXISTS', ...keys)).toBe(keys.length);
    if (scopes !== undefined) return;
    for (const store of stores.slice(1)) await store.clear();
    // Nothing of ours has stayed either.
    expect(await redis.call('DBSIZE')).toBe(keys.length);
  });

  it('inspect, reset and blocked of something that is no hash', async () => {
    const store = new RedisStore({ client: opened.client });
    const keys = await setForeign('limits');
    for (const name of ['settings', '', `${HASH}0`, HASH.toUpperCase(), `${HASH}}:more`, 'x}:{y']) {
      expect(await store.inspect(name)).toEqual([]);
      expect(await store.reset(name)).toEqual([]);
      expect(await store.blocked({ part: name })).toEqual({ blocks: [] });
    }
    expect(await redis.call('EXISTS', ...keys)).toBe(keys.length);
  });

  it('a list of blocks in which something else stands', async () => {
    const store = new RedisStore({ client: opened.client, denyCacheMs: 0 });
    const limiter = createLimiter({ scope: 'a', limit: 1, windowSec: 60, store, storeTimeoutMs: 5_000 });
    await limiter.block('alice', 60);
    const [block] = (await store.blocked()).blocks;
    expect(block?.subjectHash).toBe(hashSubject('alice', {}).hash);
    const keys = await setForeign('limits');
    for (const list of ['ends', 'names']) {
      await redis.call(
        'ZADD',
        `${keyPrefix}limits:blocks:{0}:${list}`,
        '0',
        'settings',
        '0',
        `settings}:${HASH}`,
      );
    }
    expect((await store.blocked()).blocks).toEqual([block]);
    await store.close();
    expect(await redis.call('EXISTS', ...keys)).toBe(keys.length);
    expect(await redis.call('ZCARD', `${keyPrefix}limits:blocks:{0}:names`)).toBe(1);
  });
});
