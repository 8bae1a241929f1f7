import { NONE } from './algorithm.js';
import type { Algorithm, AlgorithmRule, CounterState, Registers } from './algorithm.js';
import { bucket } from './bucket.js';
import { fixedWindow } from './fixed-window.js';
import { slidingLog } from './sliding-log.js';
import { slidingWindow } from './sliding-window.js';

export type { Algorithm, AlgorithmRule, CounterState, Registers } from './algorithm.js';
export { floorDiv, NONE } from './algorithm.js';

/** Every algorithm by the name that users type. */
export const algorithms = {
  'sliding-window': slidingWindow,
  'fixed-window': fixedWindow,
  'sliding-log': slidingLog,
  'token-bucket': bucket,
  'leaky-bucket': bucket,
} as const satisfies Record<string, Algorithm>;

export type AlgorithmName = keyof typeof algorithms;

/** Scaled units in a counter as it is stored; `undefined` is the counter that nobody has used. */
export function usedIn(
  name: AlgorithmName,
  state: CounterState | undefined,
  rule: AlgorithmRule,
  now: number,
): number {
  if (state === undefined) return 0;
  const registers: Registers = { a: NONE, b: 0, c: 0, log: [] };
  algorithms[name].load(registers, state);
  return algorithms[name].used(registers, rule, now);
}
