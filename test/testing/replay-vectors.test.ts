import { backendStore } from '../../src/stores/backend-store.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { replayVectors } from '../../src/testing/index.js';
import type { VectorCase } from '../../src/testing/index.js';
import { DecideStore } from '../support/decide-store.js';
import { JsonBackend } from '../support/json-backend.js';
import { vectors } from '../support/vectors.js';

const steps = vectors.reduce((sum, { steps: { length } }) => sum + length, 0);

test('the fixture is whole', () => {
  expect([vectors.length, steps]).toEqual([189, 3749]);
});

describe(`every value of ${String(steps)} steps comes out of`, () => {
  test('decide', async () => {
    expect(
      await replayVectors({ createStore: ({ clock }) => new DecideStore(clock), cases: vectors }),
    ).toEqual([]);
  });

  test('decide over cells that were JSON between the steps', async () => {
    const createStore = ({ clock }: { clock: { now(): number } }) => new DecideStore(clock, 'as JSON');
    expect(await replayVectors({ createStore, cases: vectors })).toEqual([]);
  });

  test('MemoryStore', async () => {
    expect(
      await replayVectors({ createStore: ({ clock }) => new MemoryStore({ clock }), cases: vectors }),
    ).toEqual([]);
  });

  test('a store made of a backend', async () => {
    const createStore = ({ clock }: { clock: { now(): number } }) => backendStore(new JsonBackend(clock));
    expect(await replayVectors({ createStore, cases: vectors })).toEqual([]);
  });
});

describe('a value that differs is reported', () => {
  const createStore = ({ clock }: { clock: { now(): number } }) => new MemoryStore({ clock });

  type Step = Mutable<VectorCase['steps'][number]>;
  type Mutable<T> = { -readonly [K in keyof T]: Mutable<T[K]> };
  const [first] = vectors;
  const readingOf = (step: Step) => step.expect.readings[0]!;

  /** The first case with its third step changed. */
  function changed(change: (step: Step) => void): VectorCase[] {
    const copy = structuredClone(first) as Mutable<VectorCase>;
    change(copy.steps[2]!);
    return [copy];
  }

  test.each<[path: string, change: (step: Step) => void]>([
    ['allowed', step => void (step.expect.allowed = !step.expect.allowed)],
    ['readings[0].allowed', step => void (readingOf(step).allowed = !readingOf(step).allowed)],
    ['readings[0].reason', step => void (readingOf(step).reason = 'cost')],
    ['readings[0].limit', step => void (readingOf(step).limit += 1)],
    ['readings[0].remaining', step => void (readingOf(step).remaining += 1)],
    ['readings[0].retryAfterMs', step => void (readingOf(step).retryAfterMs = 86_400_001)],
    ['readings[0].moreAfterMs', step => void (readingOf(step).moreAfterMs = null)],
    ['readings[0].resetAfterMs', step => void (readingOf(step).resetAfterMs = -1)],
    ['readings.length', step => void step.expect.readings.pop()],
  ])('%s', async (path, change) => {
    const mismatches = await replayVectors({ createStore, cases: changed(change) });
    expect(mismatches.map(mismatch => [mismatch.case, mismatch.step, mismatch.path])).toEqual([
      [first!.name, 2, path],
    ]);
  });

  test('with the expected and the actual value', async () => {
    const cases = changed(step => void (readingOf(step).remaining = 77));
    const actual = first!.steps[2]!.expect.readings[0]!.remaining;
    expect(await replayVectors({ createStore, cases })).toMatchObject([{ expected: 77, actual }]);
  });

  test('a store that throws, and the other cases go on', async () => {
    const boom = new Error('boom');
    let made = 0;
    const failing = ({ clock }: { clock: { now(): number } }) => {
      const store = new MemoryStore({ clock });
      made += 1;
      if (made === 1)
        store.decide = () => {
          throw boom;
        };
      return store;
    };
    const mismatches = await replayVectors({ createStore: failing, cases: vectors.slice(0, 2) });
    expect(mismatches).toEqual([
      { case: first!.name, step: 0, path: 'error', expected: undefined, actual: boom },
    ]);
    expect(made).toBe(2);
  });

  test('each case gets a store of its own, which is closed', async () => {
    let open = 0;
    const counting = async ({ clock }: { clock: { now(): number } }) => {
      const store = new MemoryStore({ clock });
      open += 1;
      store.close = () => {
        open -= 1;
      };
      return store;
    };
    await replayVectors({ createStore: counting, cases: vectors.slice(0, 3) });
    expect(open).toBe(0);
  });
});
