import { isDeepStrictEqual } from 'node:util';
import { decideCells } from '../../../src/core/decide-cells.js';
import { Check } from '../../../src/core/check.js';
import type { Cell } from '../../../src/core/cell.js';
import { liveCells } from '../../../src/stores/live-cell.js';
import type { RedisStore } from '../../../src/stores/redis/index.js';
import { randomly, World } from './random-steps.js';
import { applyBatch, resultOf } from '../../../src/testing/batch.js';

export interface Comparison {
  /** Makes the store on the clock given. */
  readonly createStore: (clock: { now(): number }) => RedisStore;
  readonly steps: number;
  readonly seed: number;
  /** Sequences of steps side by side, so that many travel in one call. */
  readonly worlds: number;
  /** Over how many subjects the rules of a call are spread. */
  readonly subjects: number;
}

/** Plays random steps on a store and on `decide`, one by one, and fails at the first difference in readings or cells. */
export async function compareWithDecide({
  createStore,
  steps,
  seed,
  worlds: size,
  subjects,
}: Comparison): Promise<void> {
  const random = randomly(seed + subjects);
  let now = 1_700_000_000_000;
  const store = createStore({ now: () => now });
  const worlds = Array.from({ length: size }, (_, i) => ({
    world: new World(`world ${String(i)}`, random, subjects),
    cells: new Map<string, Cell | undefined>(),
  }));
  const rounds = Math.ceil(steps / size);
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
    const played = worlds.map(({ world, cells }) => {
      const batch = world.step();
      const keys = batch.map(({ rule, subject }) => `${subject.hash} ${rule.scope}`);
      const checks = batch.map(({ rule, subject, operation }) => new Check(rule, subject, operation));
      const after = decideCells(
        checks,
        keys.map(key => cells.get(key)),
        now,
      );
      return {
        batch,
        keys,
        after,
        wanted: resultOf(checks, now),
        answer: Promise.resolve(applyBatch(store, batch)),
      };
    });
    const answers = await Promise.all(played.map(({ answer }) => answer));
    played.forEach(({ batch, keys, after, wanted }, i) => {
      const { at, readings, blockStarted } = answers[i]!;
      const { world, cells } = worlds[i]!;
      const given = { at, readings, blockStarted };
      // `expect` costs a millisecond each: only for telling of a difference.
      if (!isDeepStrictEqual(given, wanted)) {
        const where = { round, world: i, seed, batch };
        expect({ ...where, ...given }).toEqual({ ...where, ...wanted });
      }
      keys.forEach((key, n) => cells.set(key, after[n]));
      world.took(
        batch,
        now,
        wanted.readings.map(({ allowed }) => allowed),
      );
    });
    if (round % 25 === 0) await compareCells(store, worlds[round % size]!.cells, now);
  }
  await store.close();
}

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
