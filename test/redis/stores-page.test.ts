// Every snippet of docs/stores.md is type-checked, and run as it stands there before a real Redis.
import { availableParallelism } from 'node:os';
import { DocPage } from '../support/pages.js';
import { Reader, statuses, times } from '../support/recipe.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';

jest.setTimeout(120_000);

const page = new DocPage('docs/stores.md');
const reader = new Reader();
let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
  process.env['REDIS_URL'] = redis.url;
});
beforeEach(async () => {
  reader.begin();
  await redis.call('FLUSHALL');
});
afterEach(() => reader.end());
afterAll(async () => {
  delete process.env['REDIS_URL'];
  await redis.stop();
  page.expectAllRun();
});

test('every snippet type-checks', () => {
  const readersOwn = `
import type { Express } from 'express';
declare global {
  const app: Express;
}
`;
  expect(page.typeMistakes(readersOwn)).toEqual([]);
});

test('a share of the limit for each worker', async () => {
  await reader.recipe(page.snippet('Several processes'));
  const { headers } = await reader.ask('/');
  expect(headers['x-ratelimit-limit']).toBe(String(Math.ceil(120 / availableParallelism())));
});

test.each([
  ['ioredis', 0],
  ['node-redis', 1],
])('Redis with %s: it counts there', async (_name, index) => {
  let quit = async (): Promise<unknown> => undefined;
  await reader.recipe(`${page.snippet('Redis', index)}\nkeep(client);`, {
    keep: (client: { quit: () => Promise<unknown> }) => {
      quit = () => client.quit();
    },
  });
  try {
    expect(await statuses(121, () => reader.ask('/api'))).toEqual([...times(120, 200), 429]);
    expect(await redis.call('DBSIZE')).toBe(1);
  } finally {
    await quit();
  }
});
