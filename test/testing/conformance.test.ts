import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { Check } from '../../src/core/check.js';
import type { Rule } from '../../src/core/rule.js';
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
  type Decide = (store: MemoryStore, checks: readonly Check[]) => number;

  /** MemoryStore, with the answers or the questions changed. */
  const faulty =
    (decide: Decide): StoreFactory =>
    ({ clock }) => {
      const store = new MemoryStore({ clock });
      const real = new MemoryStore({ clock });
      return Object.assign(store, {
        decide: (checks: readonly Check[]) => decide(real, checks),
        inspect: real.inspect.bind(real),
        reset: real.reset.bind(real),
        blocked: real.blocked.bind(real),
        clear: real.clear.bind(real),
      });
    };

  /** Asks something else of the store, and gives its answer for that to what was asked. */
  const asking =
    (change: (check: Check) => Check): Decide =>
    (store, checks) => {
      const others = checks.map(change);
      const at = store.decide(others);
      checks.forEach((check, i) => {
        check.take(others[i]!, others[i]!.blockStarted);
      });
      return at;
    };

  const withRule = ({ rule, subject, operation }: Check, differs: Partial<Rule>): Check =>
    new Check({ ...rule, ...differs }, subject, operation);

  test.each<[fault: string, decide: Decide, promise: RegExp]>([
    [
      'charges what it refuses',
      (store, checks) => {
        const at = store.decide(checks);
        const refused = checks.filter(({ operation, allowed }) => operation.type === 'consume' && !allowed);
        store.decide(refused.map(check => check.with({ type: 'charge', units: 1 })));
        return at;
      },
      /a refusal takes none/,
    ],
    [
      'decides the rules one by one',
      (store, checks) => {
        for (const check of checks) store.decide([check]);
        return store.decide([]);
      },
      /all or nothing/,
    ],
    [
      'takes a look for a consume',
      asking(check =>
        check.operation.type === 'peek'
          ? check.with({ ...check.operation, type: 'consume' })
          : check.with(check.operation),
      ),
      /peek answers as things stand/,
    ],
    ['lets shadow rules refuse', asking(check => withRule(check, { shadow: false })), /shadow rule/],
    [
      'counts all scopes together',
      asking(check => withRule(check, { scope: 'a' })),
      /share a counter, others never/,
    ],
    [
      'rounds a wait up to seconds',
      (store, checks) => {
        const at = store.decide(checks);
        const up = (ms: number | null) => (ms === null ? null : Math.ceil(ms / 1000) * 1000);
        for (const check of checks) check.retryAfterMs = up(check.retryAfterMs);
        return at;
      },
      /frees all at once/,
    ],
    [
      'forgets the strikes',
      asking(check => withRule(check, { blockMs: check.rule.blockMs.slice(0, 1) })),
      /ladder climbs/,
    ],
    [
      'knows no parts',
      asking(
        ({ rule, subject, operation }) => new Check(rule, { hash: subject.hash, partHashes: [] }, operation),
      ),
      /one part of the subject/,
    ],
    [
      'keeps debt without a bound',
      asking(check =>
        check.operation.type === 'settle' && check.operation.actual > 10
          ? withRule(check, { limit: 1000, capacity: 1000 })
          : check.with(check.operation),
      ),
      /twice the capacity/,
    ],
    ['leaves a reading out', (store, checks) => store.decide(checks.slice(0, 1)), /all or nothing/],
  ])('%s', async (_, decide, promise) => {
    expect(await failures(faulty(decide))).toContainEqual(expect.stringMatching(promise));
  });

  test('reads, waits and then writes', async () => {
    const racing: StoreFactory = ({ clock }) => {
      const store = new MemoryStore({ clock });
      const real = new MemoryStore({ clock });
      return Object.assign(store, {
        decide: async (checks: readonly Check[]) => {
          const seen = checks.map(check =>
            check.with(
              check.operation.type === 'consume' ? { ...check.operation, type: 'peek' } : check.operation,
            ),
          );
          const at = real.decide(seen);
          await Promise.resolve();
          real.decide(
            checks.map((check, i) =>
              seen[i]!.allowed && check.operation.type === 'consume'
                ? check.with({ type: 'charge', units: check.operation.cost })
                : check.with(check.operation),
            ),
          );
          checks.forEach((check, i) => {
            check.take(seen[i]!, seen[i]!.blockStarted);
          });
          return at;
        },
      });
    };
    expect(await failures(racing)).toContainEqual(expect.stringMatching(/parallel calls admit exactly/));
  });
});
