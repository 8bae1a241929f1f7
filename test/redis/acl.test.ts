import { execFileSync } from 'node:child_process';
import { createLimiter } from '../../src/index.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { storeConformance } from '../../src/testing/index.js';
import { readMarkdown } from '../support/markdown.js';
import { CLIENTS } from '../support/redis/clients.js';
import type { ClientKind, OpenClient } from '../support/redis/clients.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';

jest.setTimeout(60_000);

let redis: RedisServer;
const opened: OpenClient[] = [];

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(async () => {
  for (const { close } of opened) close();
  await redis.stop();
});

/** The command of docs/redis.md that makes the user: whoever pastes it must get a store that works. */
const [written = ''] = /^redis-cli ACL SETUSER .*$/m.exec(readMarkdown('docs/redis.md')) ?? [];
/** As a shell hands them to redis-cli. */
const [ACL, SETUSER, NAME, ...RULES] = execFileSync('sh', [
  '-c',
  written.replace('redis-cli', "printf '%s\\n'"),
])
  .toString()
  .trim()
  .split('\n');
const COMMANDS = RULES.filter(word => word.startsWith('+'));
const CLIENT_RULES: Record<string, string[]> = {
  ioredis: ['+info', '+client'],
  'node-redis': ['+hello', '+client'],
};

it('the documented command makes the user', async () => {
  expect([ACL, SETUSER, NAME]).toEqual(['ACL', 'SETUSER', 'limits']);
  expect(await redis.call(ACL!, SETUSER!, NAME!, ...RULES)).toBe('OK');
});

let users = 0;

/** A client whose user has the documented rights, but for some. */
async function limited(kind: ClientKind, without: readonly string[] = []): Promise<OpenClient> {
  const name = `user${String(users++)}`;
  const own = CLIENT_RULES[kind.name.split(' ')[0]!]!;
  const rules = RULES.filter(rule => !without.includes(rule));
  await redis.call('ACL', 'SETUSER', name, 'reset', ...rules, ...own);
  const client = kind.single({ port: redis.port, password: 'secret' }, false, {
    username: name,
    password: 'secret',
  });
  opened.push(client);
  await client.ready;
  return client;
}

/** What was denied since the log was reset, as the server says it. */
const denied = async (): Promise<string> => JSON.stringify(await redis.call('ACL', 'LOG'));

/** Uses all that a store can do. Answers what failed. */
async function useEverything(store: RedisStore): Promise<{ code?: string; message: string }[]> {
  const failed: { code?: string; message: string }[] = [];
  const fail = (error: { code?: string; message: string }) => failed.push(error);
  const limiter = createLimiter({
    scope: 'a',
    limit: 1,
    windowSec: 60,
    blockSec: 60,
    store,
    storeTimeoutMs: 5_000,
  });
  limiter.on('store-error', ({ error }) => fail(error));
  for (let i = 0; i < 3; i++) await limiter.consume(['alice', 'x']);
  await store.blocked().catch(fail);
  await limiter.unblock(['alice', 'x']);
  await limiter.block('bob', 'forever');
  const reservation = await limiter.reserve('carol');
  await reservation.settle(1);
  await limiter.inspect('carol').catch(fail);
  await limiter.reset('carol').catch(fail);
  await store.clear().catch(fail);
  await store.close();
  return failed;
}

it('W7: the docs list rights', () => {
  expect(RULES).toEqual(expect.arrayContaining(['~limits:*', '-@all', '+evalsha']));
  expect(COMMANDS.length).toBeGreaterThan(10);
});

describe.each(CLIENTS)('W7: $name with the rights of the docs and no other', kind => {
  let client: OpenClient;

  beforeAll(async () => {
    client = await limited(kind);
  });

  it('may do everything', async () => {
    const store = new RedisStore({ client: client.client, denyCacheMs: 0 });
    await redis.call('FLUSHALL');
    await redis.call('SCRIPT', 'FLUSH');
    await redis.call('ACL', 'LOG', 'RESET');
    expect(await useEverything(store)).toEqual([]);
    expect(await denied()).toBe('[]');
    expect(await redis.call('DBSIZE')).toBe(0);
  });

  storeConformance(
    it,
    ({ clock, name }) =>
      new RedisStore({
        client: client.client,
        prefix: `limits:${name}`,
        ...(clock === undefined ? {} : { clock }),
      }),
    { shared: true },
  );
});

it.each(COMMANDS)('W7: without %s something fails, and says so', async right => {
  const { client } = await limited(CLIENTS[0]!, [right]);
  await redis.call('SCRIPT', 'FLUSH');
  await redis.call('ACL', 'LOG', 'RESET');
  const failed = await useEverything(new RedisStore({ client, denyCacheMs: 0 }));
  expect(await denied()).toContain(`"${right.slice(1)}"`);
  expect(failed).toContainEqual(
    expect.objectContaining({
      code: 'ERR_LIMITKEEPER_STORE_RIGHTS',
      message: expect.stringContaining(`lacks the right ${right};`),
    }),
  );
});

const LISTS = COMMANDS.filter(command => command.startsWith('+z'));

it.each(LISTS)('W7: without %s blocks stand, and who lists them hears why not', async right => {
  await redis.call('FLUSHALL');
  const { client } = await limited(CLIENTS[0]!, [right]);
  const store = new RedisStore({ client, denyCacheMs: 0 });
  const limiter = createLimiter({ scope: 'a', limit: 1, windowSec: 60, store, storeTimeoutMs: 5_000 });
  expect(await limiter.block('bob', 60)).toMatchObject({ allowed: false, reason: 'blocked' });
  expect((await limiter.consume('bob')).degraded).toBeUndefined();
  await expect(store.blocked()).rejects.toMatchObject({ code: 'ERR_LIMITKEEPER_STORE_RIGHTS' });
  await expect(store.blocked()).rejects.toThrow(right);
  // Another process, which has noted no block.
  const { client: other } = await limited(CLIENTS[0]!, [right]);
  await expect(new RedisStore({ client: other }).blocked()).rejects.toThrow(right);
});

it('W7: a right that comes back is noticed, and one that is taken away', async () => {
  await redis.call('FLUSHALL');
  const { client } = await limited(CLIENTS[0]!);
  const user = `user${String(users - 1)}`;
  const store = new RedisStore({ client, denyCacheMs: 0 });
  const limiter = createLimiter({ scope: 'a', limit: 1, windowSec: 60, store, storeTimeoutMs: 5_000 });
  expect((await store.blocked()).blocks).toEqual([]);
  await redis.call('ACL', 'SETUSER', user, '-zadd');
  await limiter.block('bob', 60);
  await expect(store.blocked()).rejects.toThrow('+zadd');
  await redis.call('ACL', 'SETUSER', user, '+zadd');
  expect((await store.blocked()).blocks).toEqual([]);
  await limiter.block('bob', 60);
  expect((await store.blocked()).blocks).toHaveLength(1);
});

it('W7: a subject that may not be read is a store that failed, and no fresh one', async () => {
  const { client } = await limited(CLIENTS[0]!, ['+get']);
  const limiter = createLimiter({
    scope: 'a',
    limit: 1,
    windowSec: 60,
    store: new RedisStore({ client }),
    storeTimeoutMs: 5_000,
    failMode: 'closed',
  });
  expect(await limiter.consume('alice')).toMatchObject({ allowed: false, reason: 'unavailable' });
});

it('W7: keys that may not be used', async () => {
  const { client } = await limited(CLIENTS[0]!, ['~limits:*']);
  const store = new RedisStore({ client });
  await expect(store.inspect('a1'.repeat(32))).rejects.toMatchObject({
    code: 'ERR_LIMITKEEPER_STORE_RIGHTS',
    message: expect.stringContaining('may not use the keys'),
  });
});
