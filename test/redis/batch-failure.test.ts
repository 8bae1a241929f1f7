import { Redis } from 'ioredis';
import type { HashedSubject, Operation } from '../../src/core/operation.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { NOON } from '../support/decisions.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';
import { consume, rule, subject } from '../support/subjects.js';
import { applyBatch } from '../../src/testing/batch.js';
import type { Batch, BatchItem } from '../../src/testing/batch.js';

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

const alice = subject('alice');
const bob = subject('bob');
const nobody = subject('nobody else speaks of');

const storeOf = (prefix: string) => new RedisStore({ client, prefix, clock: { now: () => NOON } });

/** What is left for each item, or why nothing was decided. */
async function remaining(store: RedisStore, batch: Batch): Promise<readonly number[] | string> {
  try {
    return (await applyBatch(store, batch)).readings.map(reading => reading.remaining);
  } catch (error) {
    return String(error);
  }
}

async function scriptCalls(): Promise<number> {
  return Number(/calls=(\d+)/.exec(await redis.info('cmdstat_evalsha'))?.[1]);
}

describe.each(['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket'] as const)(
  'of several decisions in one call (%s), one that fails',
  algorithm => {
    const ours = rule({ algorithm, limit: 10, windowSec: 60, blockSec: 600 });
    const on = (who: HashedSubject, operation: Operation): BatchItem => ({
      rule: ours,
      subject: who,
      operation,
    });

    // Nobody can ask for such things: they stand for whatever may go wrong in the script. JSON makes NaN a null.
    const broken = on(nobody, { type: 'charge', units: NaN });
    const unknown: BatchItem = { ...on(alice, consume(1)), rule: { ...ours, algorithm: 'none' as never } };
    const failures: readonly (readonly [string, Batch])[] = [
      ['when it is judged', [on(alice, consume(NaN))]],
      ['because of its rule', [unknown]],
      ['after it has counted for a subject', [on(alice, consume(3)), broken]],
      ['after it has counted for two', [on(alice, consume(3)), on(bob, consume(3)), broken]],
      ['after it has started a block', [on(alice, { type: 'charge', units: 50 }), broken]],
      ['after it has forgotten a subject', [on(alice, { type: 'reset' }), broken]],
      ['between its two steps', [on(alice, { type: 'settle', at: NOON, held: 2, actual: NaN })]],
    ];

    it.each(failures)('%s leaves no trace, and all others count once', async (_when, failing) => {
      await redis.call('FLUSHALL');
      const [store, without] = [storeOf('all'), storeOf('sound')];
      for (const each of [store, without]) {
        await applyBatch(each, [on(alice, consume(1))]);
        await applyBatch(each, [on(alice, { type: 'reserve', cost: 2 })]);
      }
      const [first, second, third, fourth] = [
        [on(alice, consume(1))],
        [on(alice, consume(2)), on(bob, consume(1))],
        [on(bob, { type: 'charge', units: 4 })],
        [on(alice, { type: 'settle', at: NOON, held: 2, actual: 1 })],
      ] as const;

      const calls = await scriptCalls();
      const batch = [failing, first, failing, second, third, failing, fourth, failing];
      const outcomes = await Promise.all(batch.map(items => remaining(store, items)));
      const failed = expect.stringContaining('the script failed');
      // Of alice's ten one was used and two were held.
      expect(outcomes).toEqual([failed, [6], failed, [4, 9], [5], failed, [5], failed]);
      expect((await scriptCalls()) - calls).toBe(1);

      for (const items of [first, second, third, fourth]) await applyBatch(without, items);
      for (const { hash } of [alice, bob, nobody]) {
        expect(await store.inspect(hash)).toEqual(await without.inspect(hash));
      }
      // Two subjects with either store.
      expect(await redis.call('DBSIZE')).toBe(4);
    });
  },
);
