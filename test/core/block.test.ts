import {
  blockForgettableAt,
  forgiveBlock,
  isStanding,
  setManualBlock,
  startBlock,
  STRIKE_MEMORY_MS,
} from '../../src/core/block.js';
import type { Block } from '../../src/core/block.js';

const LADDER = [60_000, 300_000, 3_600_000];
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

test('strikes are remembered for 24 hours', () => {
  expect(STRIKE_MEMORY_MS).toBe(86_400_000);
});

describe('a block stands', () => {
  const block = (until: number | null): Block => ({ since: 0, until, manual: false, strikes: 0 });

  test.each([
    ['until its last millisecond', block(1000), 999, true],
    ['no longer at blocked-until', block(1000), 1000, false],
    ['for ever', block(null), Number.MAX_SAFE_INTEGER, true],
    ['not where there is none', undefined, 0, false],
  ])('%s', (_, stored, now, stands) => {
    expect(isStanding(stored, now)).toBe(stands);
  });
});

describe('the ladder', () => {
  test.each([
    ['the first block takes the first rung', undefined, 0, { until: 60_000, strikes: 1 }],
    ['the second the second', { until: 60_000, strikes: 1 }, 60_000, { until: 360_000, strikes: 2 }],
    ['the third the last', { until: 0, strikes: 2 }, HOUR, { until: 2 * HOUR, strikes: 3 }],
    ['each later one the last', { until: 0, strikes: 7 }, HOUR, { until: 2 * HOUR, strikes: 8 }],
    [
      '1 ms before 24 h the strikes still count',
      { until: 0, strikes: 1 },
      DAY - 1,
      { until: DAY - 1 + 300_000, strikes: 2 },
    ],
    ['at exactly 24 h they are gone', { until: 0, strikes: 1 }, DAY, { until: DAY + 60_000, strikes: 1 }],
  ])('%s', (_, before, now, expected) => {
    const stored = before && { since: 0, manual: false, ...before };
    expect(startBlock(stored, LADDER, now)).toEqual({ since: now, manual: false, ...expected });
  });

  test('one rung is no ladder: nothing is remembered', () => {
    const block = startBlock(undefined, [60_000], 0);
    expect(block).toEqual({ since: 0, until: 60_000, manual: false, strikes: 0 });
    expect(blockForgettableAt(block)).toBe(60_000);
  });
});

describe('a manual block', () => {
  const struck: Block = { since: 0, until: 1000, manual: false, strikes: 2 };

  test.each([
    ['keeps the strikes', struck, 500, 7000, { since: 500, until: 7500, manual: true, strikes: 2 }],
    [
      'keeps them 1 ms before 24 h',
      struck,
      DAY + 999,
      null,
      { since: DAY + 999, until: null, manual: true, strikes: 2 },
    ],
    [
      'begins without those that lapsed',
      struck,
      DAY + 1000,
      null,
      { since: DAY + 1000, until: null, manual: true, strikes: 0 },
    ],
    [
      'replaces one for ever',
      { ...struck, until: null },
      9,
      1,
      { since: 9, until: 10, manual: true, strikes: 2 },
    ],
  ] as const)('%s', (_, before, now, ms, expected) => {
    expect(setManualBlock(before, ms, now)).toEqual(expected);
  });
});

describe('forgive', () => {
  const manual: Block = { since: 0, until: 1000, manual: true, strikes: 2 };

  test.each([
    ['leaves a standing manual block, without strikes', manual, 999, { ...manual, strikes: 0 }],
    ['ends a manual block that is over', manual, 1000, undefined],
    ['ends an automatic block', { ...manual, manual: false }, 1, undefined],
    ['leaves nothing where there is nothing', undefined, 1, undefined],
  ])('%s', (_, before, now, expected) => {
    expect(forgiveBlock(before, now)).toEqual(expected);
  });
});

test.each([
  ['for ever: never', { until: null, strikes: 0 }, Infinity],
  ['without strikes: when it ends', { until: 1000, strikes: 0 }, 1000],
  ['with strikes: 24 h later', { until: 1000, strikes: 1 }, 1000 + DAY],
])('a block may be forgotten, %s', (_, parts, at) => {
  expect(blockForgettableAt({ since: 0, manual: false, ...parts })).toBe(at);
});
