import { algorithms, NONE } from '../../src/algorithms/index.js';
import type { AlgorithmName, AlgorithmRule, Registers } from '../../src/algorithms/index.js';

type Row =
  | readonly [at: number, action: 'add', units: number]
  | readonly [at: number, action: 'refund', units: number, of: number]
  | readonly [at: number, action: 'used', units: number]
  | readonly [at: number, action: 'wait', target: number, expected: number]
  | readonly [at: number, action: 'state', ...expected: number[]];

const unused = (): Registers => ({ a: NONE, b: 0, c: 0, log: [] });

/** Plays rows of (time, action, expectation) on one counter; `used` is in whole or broken units. */
function play(name: AlgorithmName, rule: AlgorithmRule, rows: readonly Row[]): void {
  const algorithm = algorithms[name];
  const counter = unused();
  for (const row of rows) {
    const [at, action, n = 0, m = 0] = row;
    const used = counter.a === NONE ? 0 : algorithm.used(counter, rule, at);
    if (action === 'add') algorithm.add(counter, rule, at, n);
    else if (action === 'refund') algorithm.refund(counter, rule, at, m, n);
    else if (action === 'used') expect({ row, is: used / rule.windowMs }).toEqual({ row, is: n });
    else if (action === 'wait') {
      const wait = used > n * rule.windowMs ? algorithm.waitFor(counter, rule, at, n) : 0;
      expect({ row, is: wait }).toEqual({ row, is: m });
    } else expect({ row, is: algorithm.save(counter) }).toEqual({ row, is: row.slice(2) });
  }
}

const ten: AlgorithmRule = { limit: 10, windowMs: 1000, capacity: 10, align: 'first-hit' };

const TABLES: Record<string, { name: AlgorithmName; rule?: Partial<AlgorithmRule>; rows: readonly Row[] }> = {
  'fixed-window: counts while now < start + W, then nothing': {
    name: 'fixed-window',
    rows: [
      [5, 'used', 0],
      [5, 'add', 3],
      [1004, 'add', 2],
      [1004, 'used', 5],
      [1005, 'used', 0],
      [1005, 'add', 1],
      [1005, 'state', 1005, 1],
    ],
  },
  'fixed-window: a window of which all was given back is over': {
    name: 'fixed-window',
    rows: [
      [0, 'add', 3],
      [1, 'refund', 3, 0],
      [600, 'add', 1],
      [600, 'state', 600, 1],
      [1200, 'used', 1],
    ],
  },
  'fixed-window from the epoch: starts at a multiple of W': {
    name: 'fixed-window',
    rule: { align: 'epoch' },
    rows: [
      [2999, 'add', 4],
      [2999, 'state', 2000, 4],
      [3000, 'used', 0],
      [3000, 'add', 1],
      [3000, 'state', 3000, 1],
    ],
  },
  'fixed-window: gives back only from the running window, and never below 0': {
    name: 'fixed-window',
    rows: [
      [0, 'add', 3],
      [10, 'refund', 9, 0],
      [10, 'used', 0],
      [10, 'add', 2],
      [1010, 'add', 5],
      [1011, 'refund', 2, 10],
      [1011, 'used', 5],
      // The very start of the running window is in it.
      [1011, 'refund', 2, 1010],
      [1011, 'used', 3],
    ],
  },
  'fixed-window: waits for the end of the window': {
    name: 'fixed-window',
    rows: [
      [100, 'add', 7],
      [400, 'wait', 7, 0],
      [400, 'wait', 6, 700],
      [400, 'wait', 0, 700],
      [1100, 'wait', 0, 0],
    ],
  },
  'sliding-window: the window before fades in proportion': {
    name: 'sliding-window',
    rows: [
      [0, 'add', 10],
      [999, 'used', 10],
      [1000, 'used', 10],
      [1250, 'used', 7.5],
      [1250, 'add', 2],
      [1250, 'state', 1000, 2, 10],
      [1500, 'used', 7],
      [2000, 'used', 2],
      [2500, 'used', 1],
      [3000, 'used', 0],
    ],
  },
  'sliding-window: starts afresh when nothing is used': {
    name: 'sliding-window',
    rows: [
      [0, 'add', 1],
      [2000, 'used', 0],
      [2300, 'add', 1],
      [2300, 'state', 2300, 1, 0],
      [2400, 'refund', 1, 2300],
      [2700, 'add', 1],
      [2700, 'state', 2700, 1, 0],
    ],
  },
  'sliding-window: gives back to the current and the previous window only': {
    name: 'sliding-window',
    rows: [
      [0, 'add', 8],
      [1500, 'add', 3],
      [1500, 'refund', 3, 10],
      [1500, 'state', 1000, 3, 5],
      [1500, 'refund', 9, 1500],
      [1500, 'state', 1000, 0, 5],
      [1700, 'add', 2],
      [2500, 'add', 1],
      [2500, 'refund', 5, 10],
      [2500, 'state', 2000, 1, 2],
    ],
  },
  'sliding-window: waits while the previous fades, or until the current has become it': {
    name: 'sliding-window',
    rows: [
      [0, 'add', 10],
      // 10 × (1000 − e) / 1000 ≤ 9 at e = 100.
      [0, 'wait', 9, 1100],
      [1000, 'wait', 9, 100],
      // ≤ 7 at e = 300.
      [1050, 'wait', 7, 250],
      [1300, 'wait', 7, 0],
      [1050, 'wait', 0, 950],
      [1300, 'add', 3],
      // 10 × (1000 − e) / 1000 + 3 ≤ 8 at e = 500.
      [1300, 'wait', 8, 200],
      // The 3 alone are above 2: 3 × (1000 − e) / 1000 ≤ 2 at e = 333.33 of the next window.
      [1300, 'wait', 2, 1034],
      [1300, 'wait', 0, 1700],
    ],
  },
  'sliding-log: each unit counts for W': {
    name: 'sliding-log',
    rows: [
      [0, 'add', 2],
      [400, 'add', 1],
      [400, 'add', 3],
      [400, 'state', 0, 2, 400, 4],
      [999, 'used', 6],
      [1000, 'used', 4],
      [1000, 'add', 1],
      [1000, 'state', 400, 4, 1000, 1],
      [1400, 'used', 1],
    ],
  },
  'sliding-log: gives back the units of that time only': {
    name: 'sliding-log',
    rows: [
      [0, 'add', 2],
      [400, 'add', 4],
      [500, 'refund', 3, 400],
      [500, 'state', 0, 2, 400, 1],
      [500, 'refund', 9, 400],
      [500, 'state', 0, 2],
      [500, 'refund', 1, 7],
      [500, 'state', 0, 2],
    ],
  },
  'sliding-log: waits for the oldest units': {
    name: 'sliding-log',
    rows: [
      [0, 'add', 2],
      [400, 'add', 3],
      [600, 'wait', 5, 0],
      [600, 'wait', 4, 400],
      [600, 'wait', 3, 400],
      [600, 'wait', 2, 800],
      [600, 'wait', 0, 800],
    ],
  },
  'sliding-log: stays in order when the clock was set back': {
    name: 'sliding-log',
    rows: [
      [500, 'add', 1],
      [300, 'add', 2],
      [500, 'add', 1],
      [500, 'state', 300, 2, 500, 2],
    ],
  },
  'buckets: leak limit / W a millisecond, exactly': {
    name: 'token-bucket',
    rule: { limit: 3 },
    rows: [
      [0, 'add', 1],
      [0, 'state', 1000, 0],
      [333, 'used', 0.001],
      [334, 'used', 0],
      [333, 'add', 1],
      [333, 'state', 1001, 333],
      [100_000, 'used', 0],
    ],
  },
  'buckets: give back what has not leaked yet': {
    name: 'leaky-bucket',
    rows: [
      [0, 'add', 5],
      [200, 'used', 3],
      [200, 'refund', 3, 0],
      // 3 − 2 that have leaked since.
      [200, 'used', 2],
      [200, 'refund', 5, 0],
      [200, 'used', 0],
      [200, 'add', 2],
      [500, 'refund', 2, 200],
      [500, 'used', 0],
    ],
  },
  'buckets: wait for the leak, rounded up to whole milliseconds': {
    name: 'token-bucket',
    rule: { limit: 3 },
    rows: [
      [0, 'add', 5],
      [0, 'wait', 5, 0],
      [0, 'wait', 4, 334],
      [0, 'wait', 3, 667],
      [0, 'wait', 2, 1000],
      [500, 'wait', 4, 0],
      [500, 'wait', 3, 167],
      [0, 'wait', 0, 1667],
    ],
  },
  'buckets: the wait of the longest debt is exact, though it ends past 2^53': {
    name: 'token-bucket',
    rule: { limit: 1, windowMs: 2 ** 38, capacity: 2 ** 14 },
    rows: [
      [1_764_585_780_001, 'add', 2 ** 15],
      [1_764_585_780_001, 'wait', 0, 2 ** 53],
      [1_764_585_780_002, 'wait', 2 ** 14, 2 ** 52 - 1],
      [1_764_585_780_002, 'wait', 0, 2 ** 53 - 1],
    ],
  },
  'buckets: the same millisecond never leaks twice': {
    name: 'token-bucket',
    rows: [
      [1000, 'add', 5],
      [900, 'used', 5],
      [900, 'add', 1],
      [900, 'state', 6000, 1000],
      [1000, 'used', 6],
    ],
  },
  'fixed-window: a clock that was set back finds the window still running': {
    name: 'fixed-window',
    rows: [
      [1000, 'add', 5],
      [100, 'used', 5],
      [100, 'add', 1],
      [100, 'state', 1000, 6],
      [100, 'wait', 0, 1900],
    ],
  },
  'sliding-window: a clock that was set back finds both windows in full': {
    name: 'sliding-window',
    rows: [
      [0, 'add', 4],
      [1500, 'add', 1],
      [200, 'used', 5],
      [200, 'wait', 4, 1050],
    ],
  },
};

test.each(Object.entries(TABLES))('%s', (_, { name, rule, rows }) => {
  play(name, { ...ten, ...rule }, rows);
});

test.each(Object.entries(algorithms))('%s: add counts each unit in full at once', (_, algorithm) => {
  const counter = unused();
  for (const now of [1000, 1500, 1700, 2900, 2100, 9000]) {
    const before = counter.a === NONE ? 0 : algorithm.used(counter, ten, now);
    algorithm.add(counter, ten, now, 2);
    expect(algorithm.used(counter, ten, now)).toBe(before + 2 * ten.windowMs);
  }
});

test.each(Object.entries(algorithms))('%s: what was saved loads as it was, as a copy', (_, algorithm) => {
  const counter = unused();
  algorithm.add(counter, ten, 1000, 3);
  algorithm.add(counter, ten, 2100, 2);
  const state = Object.freeze([...algorithm.save(counter)]);
  const copy = unused();
  algorithm.load(copy, state);
  expect(copy).toEqual(counter);
  algorithm.add(copy, ten, 2500, 2);
  algorithm.refund(copy, ten, 2500, 2100, 2);
  expect(algorithm.save(counter)).toEqual(state);
});
