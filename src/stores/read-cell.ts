import { algorithms } from '../algorithms/index.js';
import { CELL_VERSION } from '../core/cell.js';
import type { Cell } from '../core/cell.js';

/**
 * The cell in what a store has kept (parsed JSON), or `undefined` where it is none that this version can read: a foreign,
 * damaged or newer form. It then counts as absent, for a counter that throws or is not a number would refuse for ever.
 */
export function readCell(value: unknown): Cell | undefined {
  return isCell(value) ? value : undefined;
}

function isCell(value: unknown): value is Cell {
  return (
    isObject(value) &&
    value['v'] === CELL_VERSION &&
    Array.isArray(value['counters']) &&
    value['counters'].every(isCounter) &&
    (value['block'] === undefined || isBlock(value['block']))
  );
}

function isCounter(value: unknown): boolean {
  return (
    isObject(value) &&
    typeof value['algorithm'] === 'string' &&
    Object.hasOwn(algorithms, value['algorithm']) &&
    isAmount(value['windowMs']) &&
    isEnd(value['until']) &&
    isAmounts(value['holds']) &&
    (value['state'] === undefined || isAmounts(value['state']))
  );
}

function isBlock(value: unknown): boolean {
  return (
    isObject(value) &&
    isAmount(value['since']) &&
    (value['until'] === null || isAmount(value['until'])) &&
    typeof value['manual'] === 'boolean' &&
    isAmount(value['strikes'])
  );
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Twice the largest capacity × window: the most that a counter in debt holds. */
const MOST = 2 ** 53;

const isAmount = (value: unknown): boolean => isWhole(value, MOST);

/** A bucket in debt may take that long to drain, from now. */
const isEnd = (value: unknown): boolean => isWhole(value, 2 * MOST);

const isWhole = (value: unknown, most: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most;

const isAmounts = (value: unknown): boolean => Array.isArray(value) && value.every(isAmount);
