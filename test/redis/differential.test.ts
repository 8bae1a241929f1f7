import { Redis } from 'ioredis';
import { RedisStore } from '../../src/stores/redis/index.js';
import { compareWithDecide } from '../support/redis/compare.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';

// More on demand: LIMITKEEPER_STEPS=1000000 LIMITKEEPER_SEED=7 npx jest test/redis/differential
const STEPS = Number(process.env['LIMITKEEPER_STEPS'] ?? 50_000);
const SEED = Number(process.env['LIMITKEEPER_SEED'] ?? 20_240_917);

jest.setTimeout(120_000 + STEPS * 4);

let redis: RedisServer;
let client: Redis;

beforeAll(async () => {
  redis = await startRedis();
  client = new Redis(redis.port);
});

afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

describe('the Lua script and decide()', () => {
  // A call of one consume takes a way of its own through the script.
  it.each([
    { subjects: 1, batching: true },
    { subjects: 2, batching: true },
    { subjects: 1, batching: false },
  ])(
    `agree step by step over a third of ${String(STEPS)} random steps, rules over $subjects subjects, batching: $batching`,
    async ({ subjects, batching }) => {
      await compareWithDecide({
        createStore: clock =>
          new RedisStore({ client, prefix: `diff${String(subjects)}${String(batching)}`, batching, clock }),
        steps: STEPS / 3,
        seed: SEED,
        worlds: 100,
        subjects,
      });
    },
  );
});
