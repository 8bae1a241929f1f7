import { cellForgettableAt, changeHolds, heldUnits, lapseTime } from '../../src/core/cell.js';
import type { Cell, Counter } from '../../src/core/cell.js';

describe('a hold made at t lapses at (floor(t / holdMs) + 2) × holdMs', () => {
  test.each([
    [0, 60_000, 120_000],
    [59_999, 60_000, 120_000],
    [60_000, 60_000, 180_000],
    [1_764_585_780_001, 10_000, 1_764_585_800_000],
    [7, 1, 9],
    // 2^51 / 3 is no whole number, and as a double it is rounded.
    [2 ** 51, 3, 2_251_799_813_685_252],
  ])('made at %d with %d ms: %d', (at, holdMs, lapse) => {
    expect(lapseTime(at, holdMs)).toBe(lapse);
  });
});

test.each([
  [[], 0, 0],
  [[100, 5], 99, 5],
  [[100, 5], 100, 0],
  [[100, 5, 200, 7], 100, 7],
  [[100, 5, 200, 7], 0, 12],
])('of the holds %j at %d, %d units are held', (holds, now, held) => {
  expect(heldUnits(holds, now)).toBe(held);
});

describe('holds', () => {
  test.each([
    ['a first one', [], 100, 5, 0, [100, 5]],
    ['of the same lapse time are one sum', [100, 5], 100, 3, 0, [100, 8]],
    ['are kept in order of lapse', [200, 5], 100, 3, 0, [100, 3, 200, 5]],
    ['that lapsed are dropped', [100, 5, 200, 7], 300, 1, 100, [200, 7, 300, 1]],
    ['are taken off', [100, 5], 100, -2, 0, [100, 3]],
    ['taken off to nothing are gone', [100, 5, 200, 7], 100, -5, 0, [200, 7]],
    ['never fall below zero', [100, 5], 100, -9, 0, []],
    ['of another lapse time are left alone', [200, 7], 100, -5, 0, [200, 7]],
    ['that lapsed are not there to take off', [100, 5, 200, 7], 100, -5, 150, [200, 7]],
  ])('%s', (_, holds, lapse, units, now, expected) => {
    const before = [...holds];
    expect(changeHolds(holds, lapse, units, now)).toEqual(expected);
    expect(holds).toEqual(before);
  });
});

describe('a cell may be forgotten', () => {
  const counter = (until: number): Counter => ({
    algorithm: 'fixed-window',
    windowMs: 1000,
    holds: [],
    until,
  });
  const block = (until: number | null, strikes = 0) => ({ since: 0, until, manual: false, strikes });

  test.each<[string, Omit<Cell, 'v'>, number]>([
    ['when its last counter is empty', { counters: [counter(10), counter(30), counter(20)] }, 30],
    ['when its block is over', { counters: [counter(10)], block: block(50) }, 50],
    ['when its strikes are', { counters: [counter(10)], block: block(50, 1) }, 86_400_050],
    ['never while a block for ever stands', { counters: [counter(10)], block: block(null) }, Infinity],
    ['at once when it is empty', { counters: [] }, 0],
  ])('%s', (_, cell, at) => {
    expect(cellForgettableAt({ v: 1, ...cell })).toBe(at);
  });
});
