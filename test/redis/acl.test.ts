import { Redis } from 'ioredis';
import { createLimiter } from '../../src/index.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';

jest.setTimeout(30_000);

let redis: RedisServer;
let client: Redis | undefined;

beforeAll(async () => {
  redis = await startRedis();
});

afterEach(() => client?.disconnect());

afterAll(() => redis.stop());

// As docs/redis.md says them; `info` is the client's own wish, for its ready check.
const RIGHTS =
  '+evalsha +eval +time +get +set +del +pttl +pexpire +type +zadd +zrem +zcard +zrange +zrangebyscore +zrangebylex';
const OPERATORS = '+scan +unlink';

async function user(rights: string): Promise<Redis> {
  const name = `user${String(Math.random()).slice(2)}`;
  await redis.call(
    'ACL',
    'SETUSER',
    name,
    'on',
    '>secret',
    '~limits:*',
    '-@all',
    '+info',
    ...rights.split(' '),
  );
  client = new Redis({ port: redis.port, username: name, password: 'secret', disableClientInfo: true });
  const opened = client;
  opened.on('error', () => {});
  await new Promise(resolve => opened.once('ready', resolve));
  return opened;
}

/** Uses all that a store can do. Answers the messages of what failed. */
async function useEverything(store: RedisStore): Promise<string[]> {
  const failed: string[] = [];
  const fail = (error: unknown) => failed.push(String(error));
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
  await limiter.reset('carol');
  await store.clear().catch(fail);
  await store.close();
  return failed;
}

it('the rights named in the docs are enough for everything', async () => {
  const store = new RedisStore({ client: await user(`${RIGHTS} ${OPERATORS}`), denyCacheMs: 0 });
  await redis.call('ACL', 'LOG', 'RESET');
  expect(await useEverything(store)).toEqual([]);
  expect(await redis.call('ACL', 'LOG')).toEqual([]);
  expect(await redis.call('DBSIZE')).toBe(0);
});

const ALL = `${RIGHTS} ${OPERATORS}`.split(' ');

it.each(ALL)('none of them is one too many: without %s something is denied', async right => {
  const rest = ALL.filter(other => other !== right);
  const store = new RedisStore({ client: await user(rest.join(' ')), denyCacheMs: 0 });
  await redis.call('SCRIPT', 'FLUSH');
  await redis.call('ACL', 'LOG', 'RESET');
  await useEverything(store);
  expect(JSON.stringify(await redis.call('ACL', 'LOG'))).toContain(`"${right.slice(1)}"`);
});
