import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import type { Batch } from '../../src/core/operation.js';
import type { BatchResult } from '../../src/core/store.js';
import { storeConformance } from '../../src/testing/index.js';
import type { ConformanceSupport, StoreFactory } from '../../src/testing/index.js';

/** The suite's tests by name, registered but not run. */
function registered(
  createStore: StoreFactory,
  supports?: ConformanceSupport,
): Map<string, () => Promise<void>> {
  const bodies = new Map<string, () => Promise<void>>();
  storeConformance((name, body) => bodies.set(name, body), createStore, supports);
  return bodies;
}

/** The names of the tests that fail. */
async function failures(createStore: StoreFactory): Promise<string[]> {
  const failed: string[] = [];
  for (const [name, body] of registered(createStore)) {
    await body().catch(() => failed.push(name));
  }
  return failed;
}

const sound: StoreFactory = ({ clock }) => new MemoryStore({ clock });

test('a sound store fails none', async () => {
  expect(await failures(sound)).toEqual([]);
});

test('no two tests share a name', () => {
  const names: string[] = [];
  storeConformance(name => names.push(name), sound, { shared: true });
  expect(new Set(names).size).toBe(names.length);
});

describe('what a store says it cannot do is not asked of it', () => {
  const named = (supports: ConformanceSupport, pattern: RegExp) =>
    [...registered(sound, supports).keys()].filter(name => pattern.test(name));

  test.each<[ConformanceSupport, RegExp]>([
    [{ blocked: false }, /listed|lists|pages of blocks|paging|part of the subject/],
    [{ parts: false }, /part of the subject/],
    [{ clock: false }, /year|30 days|steps back|to the millisecond/],
    [{ clock: true }, /waiting as told/],
    [{ shared: false }, /two stores of the same name/],
  ])('%j', (supports, pattern) => {
    expect(named(supports, pattern)).toEqual([]);
  });

  test.each<[ConformanceSupport, RegExp]>([
    [{ blocked: true }, /part of the subject/],
    [{ clock: false }, /waiting as told/],
    [{ clock: true }, /window of a year/],
    [{ shared: true }, /two stores of the same name/],
  ])('but %j is', (supports, pattern) => {
    expect(named(supports, pattern)).not.toEqual([]);
  });
});

test('each test has a store of its own name, and closes all that it made', async () => {
  const names: string[] = [];
  let open = 0;
  const tests = registered(({ clock, name }) => {
    names.push(name);
    open += 1;
    const store = new MemoryStore({ clock });
    let closed = false;
    store.close = () => {
      if (!closed) open -= 1;
      closed = true;
    };
    return store;
  });
  for (const body of tests.values()) await body();
  expect(new Set(names).size).toBe(tests.size);
  expect(open).toBe(0);
});

describe('a store with a fault fails the test of that promise', () => {
  type Apply = (store: MemoryStore, batch: Batch) => BatchResult;

  /** MemoryStore, with the answers or the questions changed. */
  const faulty =
    (apply: Apply): StoreFactory =>
    ({ clock }) => {
      const store = new MemoryStore({ clock });
      const real = new MemoryStore({ clock });
      return Object.assign(store, {
        apply: (batch: Batch) => apply(real, batch),
        inspect: real.inspect.bind(real),
        reset: real.reset.bind(real),
        blocked: real.blocked.bind(real),
        clear: real.clear.bind(real),
      });
    };

  test.each<[fault: string, apply: Apply, promise: RegExp]>([
    [
      'charges what it refuses',
      (store, batch) => {
        const result = store.apply(batch);
        const refused = batch.filter(
          ({ operation }, i) => operation.type === 'consume' && !result.readings[i]!.allowed,
        );
        store.apply(refused.map(item => ({ ...item, operation: { type: 'charge', units: 1 } })));
        return result;
      },
      /a refusal takes none/,
    ],
    [
      'decides the rules one by one',
      (store, batch) => {
        const results = batch.map(item => store.apply([item]));
        return { ...store.apply([]), readings: results.flatMap(result => result.readings) };
      },
      /all or nothing/,
    ],
    [
      'takes a look for a consume',
      (store, batch) =>
        store.apply(
          batch.map(item =>
            item.operation.type === 'peek'
              ? { ...item, operation: { ...item.operation, type: 'consume' } }
              : item,
          ),
        ),
      /peek answers as things stand/,
    ],
    [
      'lets shadow rules refuse',
      (store, batch) => store.apply(batch.map(item => ({ ...item, rule: { ...item.rule, shadow: false } }))),
      /shadow rule/,
    ],
    [
      'counts all scopes together',
      (store, batch) => store.apply(batch.map(item => ({ ...item, rule: { ...item.rule, scope: 'a' } }))),
      /share a counter, others never/,
    ],
    [
      'rounds a wait up to seconds',
      (store, batch) => {
        const { readings, ...rest } = store.apply(batch);
        const up = (ms: number | null) => (ms === null ? null : Math.ceil(ms / 1000) * 1000);
        return { ...rest, readings: readings.map(r => ({ ...r, retryAfterMs: up(r.retryAfterMs) })) };
      },
      /frees all at once/,
    ],
    [
      'forgets the strikes',
      (store, batch) =>
        store.apply(
          batch.map(item => ({ ...item, rule: { ...item.rule, blockMs: item.rule.blockMs.slice(0, 1) } })),
        ),
      /ladder climbs/,
    ],
    [
      'knows no parts',
      (store, batch) =>
        store.apply(batch.map(item => ({ ...item, subject: { hash: item.subject.hash, partHashes: [] } }))),
      /one part of the subject/,
    ],
    [
      'keeps debt without a bound',
      (store, batch) => {
        const many = batch.flatMap(item =>
          item.operation.type === 'settle' && item.operation.actual > 10
            ? [{ ...item, rule: { ...item.rule, limit: 1000, capacity: 1000 } }]
            : [item],
        );
        return store.apply(many);
      },
      /twice the capacity/,
    ],
  ])('%s', async (_, apply, promise) => {
    expect(await failures(faulty(apply))).toContainEqual(expect.stringMatching(promise));
  });

  test('reads, waits and then writes', async () => {
    const racing: StoreFactory = ({ clock }) => {
      const store = new MemoryStore({ clock });
      const real = new MemoryStore({ clock });
      return Object.assign(store, {
        apply: async (batch: Batch) => {
          const looks = batch.map(item =>
            item.operation.type === 'consume'
              ? { ...item, operation: { ...item.operation, type: 'peek' as const } }
              : item,
          );
          const seen = real.apply(looks);
          await Promise.resolve();
          real.apply(
            batch.map((item, i) =>
              seen.readings[i]!.allowed && item.operation.type === 'consume'
                ? { ...item, operation: { type: 'charge' as const, units: item.operation.cost } }
                : item,
            ),
          );
          return seen;
        },
      });
    };
    expect(await failures(racing)).toContainEqual(expect.stringMatching(/parallel calls admit exactly/));
  });
});
