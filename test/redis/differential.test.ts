import { isDeepStrictEqual } from 'node:util';
import { Redis } from 'ioredis';
import { decide } from '../../src/core/decide.js';
import type { Cell } from '../../src/core/cell.js';
import { liveCells } from '../../src/stores/live-cell.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { randomly, World } from '../support/redis/random-steps.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';

// More on demand: LIMITKEEPER_STEPS=1000000 npx jest test/redis/differential
const STEPS = Number(process.env['LIMITKEEPER_STEPS'] ?? 50_000);
const SEED = Number(process.env['LIMITKEEPER_SEED'] ?? 20_240_917);
const WORLDS = 100;

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
  it.each([1, 2])(
    `agree step by step over half of ${String(STEPS)} random steps, rules over %i subjects`,
    async subjects => {
      const random = randomly(SEED + subjects);
      let now = 1_700_000_000_000;
      const store = new RedisStore({ client, prefix: `diff${String(subjects)}`, clock: { now: () => now } });
      const worlds = Array.from({ length: WORLDS }, (_, i) => ({
        world: new World(`world ${String(i)}`, random, subjects),
        cells: new Map<string, Cell | undefined>(),
      }));
      const rounds = Math.ceil(STEPS / 2 / WORLDS);
      for (let round = 0; round < rounds; round++) {
        // Mostly a few milliseconds, sometimes days; sometimes the clock is set back.
        now += [
          0,
          1,
          random(20),
          random(3000),
          random(100_000),
          random(3) === 0 ? 86_400_000 * random(40) : 1,
          -random(3000),
        ][random(7)]!;
        const steps = worlds.map(({ world, cells }) => {
          const batch = world.step();
          const keys = batch.map(({ rule, subject }) => `${subject.hash} ${rule.scope}`);
          const expected = decide(
            batch,
            keys.map(key => cells.get(key)),
            now,
          );
          return { batch, keys, expected, actual: Promise.resolve(store.apply(batch)) };
        });
        const answers = await Promise.all(steps.map(step => step.actual));
        steps.forEach(({ batch, keys, expected }, i) => {
          const { at, readings, blockStarted } = answers[i]!;
          const { world, cells } = worlds[i]!;
          const wanted = { at: now, readings: expected.readings, blockStarted: expected.blockStarted };
          const given = { at, readings, blockStarted };
          // `expect` costs a millisecond each: only for telling of a difference.
          if (!isDeepStrictEqual(given, wanted)) {
            const where = { round, world: i, seed: SEED, batch };
            expect({ ...where, ...given }).toEqual({ ...where, ...wanted });
          }
          keys.forEach((key, n) => cells.set(key, expected.cells[n]));
          world.took(
            batch,
            now,
            expected.readings.map(({ allowed }) => allowed),
          );
        });
        if (round % 25 === 0) await compareCells(store, worlds[round % WORLDS]!.cells, now);
      }
      await store.close();
    },
  );
});

/** What is stored is the same, too: a difference there may show in a reading only much later. */
async function compareCells(
  store: RedisStore,
  cells: ReadonlyMap<string, Cell | undefined>,
  now: number,
): Promise<void> {
  const hashes = new Set([...cells.keys()].map(key => key.slice(0, 64)));
  for (const hash of hashes) {
    const stored = [...cells].flatMap(([key, cell]) =>
      key.startsWith(hash) && cell !== undefined ? [{ scope: key.slice(65), cell }] : [],
    );
    const byScope = (a: { scope: string }, b: { scope: string }) => a.scope.localeCompare(b.scope);
    const actual = await store.inspect(hash);
    expect([...actual].sort(byScope)).toEqual(liveCells(stored, now).sort(byScope));
  }
}
