import type { Reading } from '../../core/decision.js';
import type { Plan, RuleSettings } from '../../core/rule.js';
import { START, expectReading, rule } from './world.js';
import type { Clause } from './world.js';

/** Time in ms after the start, what is done with which cost, what is answered. */
type Row = readonly [at: number, type: 'consume' | 'peek', cost: number, expected: Partial<Reading>];

interface Table {
  readonly name: string;
  readonly rule: Partial<RuleSettings & Plan>;
  readonly rows: readonly Row[];
}

const YEAR = 365 * 86_400;

const TABLES: readonly Table[] = [
  {
    name: 'fixed-window: the window starts with its first unit and frees all at once',
    rule: { algorithm: 'fixed-window', limit: 2, windowSec: 60 },
    rows: [
      [10_000, 'consume', 1, { allowed: true, remaining: 1, moreAfterMs: 60_000, resetAfterMs: 60_000 }],
      [69_999, 'consume', 1, { allowed: true, remaining: 0, retryAfterMs: 0, resetAfterMs: 1 }],
      [69_999, 'consume', 1, { allowed: false, reason: 'limit', retryAfterMs: 1 }],
      [70_000, 'consume', 1, { allowed: true, remaining: 1, resetAfterMs: 60_000 }],
    ],
  },
  {
    name: 'fixed-window aligned to the epoch: the window starts at a multiple of its length',
    rule: { algorithm: 'fixed-window', align: 'epoch', limit: 2, windowSec: 60 },
    rows: [
      [50_000, 'consume', 2, { allowed: true, remaining: 0, resetAfterMs: 10_000 }],
      [59_999, 'consume', 1, { allowed: false, retryAfterMs: 1 }],
      [60_000, 'consume', 1, { allowed: true, remaining: 1, resetAfterMs: 60_000 }],
    ],
  },
  {
    name: 'sliding-window: what the window before took fades away in proportion',
    rule: { algorithm: 'sliding-window', limit: 2, windowSec: 60 },
    rows: [
      [0, 'consume', 2, { allowed: true, remaining: 0, moreAfterMs: 90_000, resetAfterMs: 120_000 }],
      // 2 × 30/60 + 1 = 2 fits at 90 s, not a millisecond before.
      [60_000, 'consume', 1, { allowed: false, reason: 'limit', retryAfterMs: 30_000 }],
      [89_999, 'consume', 1, { allowed: false, retryAfterMs: 1 }],
      [90_000, 'consume', 1, { allowed: true, remaining: 0 }],
    ],
  },
  {
    name: 'sliding-log: each unit frees itself, one window after it was taken',
    rule: { algorithm: 'sliding-log', limit: 2, windowSec: 60 },
    rows: [
      [0, 'consume', 1, { allowed: true, remaining: 1 }],
      [10_000, 'consume', 1, { allowed: true, remaining: 0, moreAfterMs: 50_000, resetAfterMs: 60_000 }],
      [59_999, 'consume', 1, { allowed: false, retryAfterMs: 1 }],
      [60_000, 'consume', 1, { allowed: true, remaining: 0, moreAfterMs: 10_000 }],
    ],
  },
  {
    name: 'token-bucket: units come back evenly, up to the burst',
    rule: { algorithm: 'token-bucket', limit: 60, windowSec: 60, burst: 2 },
    rows: [
      [0, 'consume', 2, { allowed: true, limit: 2, remaining: 0, moreAfterMs: 1000, resetAfterMs: 2000 }],
      [999, 'consume', 1, { allowed: false, retryAfterMs: 1 }],
      [1000, 'consume', 1, { allowed: true, remaining: 0 }],
      [86_400_000, 'peek', 2, { allowed: true, remaining: 2 }],
    ],
  },
  {
    name: 'leaky-bucket: evenly spaced',
    rule: { algorithm: 'leaky-bucket', limit: 60, windowSec: 60 },
    rows: [
      [0, 'consume', 1, { allowed: true, limit: 1, remaining: 0 }],
      [1, 'consume', 1, { allowed: false, retryAfterMs: 999 }],
      [1000, 'consume', 1, { allowed: true, remaining: 0, moreAfterMs: 1000 }],
    ],
  },
  {
    name: 'a million units a second are counted exactly',
    rule: { algorithm: 'token-bucket', limit: 1_000_000, windowSec: 1 },
    rows: [
      [0, 'consume', 1_000_000, { allowed: true, remaining: 0, moreAfterMs: 1, resetAfterMs: 1000 }],
      // 1,000 units a millisecond.
      [7, 'peek', 7001, { allowed: false, remaining: 7000, retryAfterMs: 1 }],
      [7, 'consume', 7000, { allowed: true, remaining: 0 }],
      [8, 'consume', 1001, { allowed: false, remaining: 1000, retryAfterMs: 1 }],
    ],
  },
  {
    name: 'a window of a year is counted exactly',
    rule: { algorithm: 'sliding-window', limit: 142_000, windowSec: YEAR },
    rows: [
      // One unit has faded when 142,000 × elapsed ≥ W: after 222,084.5… ms of the second year.
      [0, 'consume', 142_000, { allowed: true, remaining: 0, moreAfterMs: YEAR * 1000 + 222_085 }],
      [YEAR * 1000 + 222_084, 'consume', 1, { allowed: false, retryAfterMs: 1 }],
      [YEAR * 1000 + 222_085, 'consume', 1, { allowed: true, remaining: 0 }],
    ],
  },
  {
    name: 'a window longer than 2^31 ms does not end at once',
    rule: { algorithm: 'fixed-window', limit: 1, windowSec: 30 * 86_400 },
    rows: [
      [0, 'consume', 1, { allowed: true, remaining: 0, resetAfterMs: 2_592_000_000 }],
      [1000, 'consume', 1, { allowed: false, retryAfterMs: 2_591_999_000 }],
      [2_591_999_999, 'consume', 1, { allowed: false, retryAfterMs: 1 }],
      [2_592_000_000, 'consume', 1, { allowed: true }],
    ],
  },
  {
    name: 'a window of half a second',
    rule: { algorithm: 'fixed-window', limit: 1, windowSec: 0.5 },
    rows: [
      [0, 'consume', 1, { allowed: true }],
      [499, 'consume', 1, { allowed: false, retryAfterMs: 1 }],
      [500, 'consume', 1, { allowed: true }],
    ],
  },
  {
    name: 'a clock that steps back admits nothing more, and lengthens a wait by no more than the step',
    rule: { algorithm: 'fixed-window', limit: 2, windowSec: 60 },
    rows: [
      [40_000, 'consume', 2, { allowed: true, remaining: 0, resetAfterMs: 60_000 }],
      [10_000, 'consume', 1, { allowed: false, retryAfterMs: 90_000 }],
      [100_000, 'consume', 1, { allowed: true, remaining: 1 }],
    ],
  },
  {
    name: 'a bucket does not leak the same millisecond twice when the clock steps back',
    rule: { algorithm: 'token-bucket', limit: 60, windowSec: 60, burst: 2 },
    rows: [
      [0, 'consume', 2, { allowed: true }],
      [1000, 'consume', 1, { allowed: true, remaining: 0 }],
      [0, 'consume', 1, { allowed: false, retryAfterMs: 2000 }],
      [1000, 'consume', 1, { allowed: false, retryAfterMs: 1000 }],
    ],
  },
];

export const algorithmClauses: readonly Clause[] = TABLES.map(({ name, rule: settings, rows }) => ({
  promise: name,
  needs: ['clock'],
  async check(world) {
    const counted = rule(settings);
    for (const [at, type, cost, expected] of rows) {
      world.clock.set(START + at);
      expectReading(
        await world.decide(counted, { type, cost }),
        expected,
        `${String(at)} ms, ${type} ${String(cost)}:`,
      );
    }
  },
}));
