import type { Algorithm } from './algorithm.js';
import { bucket } from './bucket.js';
import { fixedWindow } from './fixed-window.js';
import { slidingLog } from './sliding-log.js';
import { slidingWindow } from './sliding-window.js';

export type { Algorithm, AlgorithmRule, CounterState } from './algorithm.js';
export { floorDiv } from './algorithm.js';

/** Every algorithm by the name that users type. */
export const algorithms = {
  'sliding-window': slidingWindow,
  'fixed-window': fixedWindow,
  'sliding-log': slidingLog,
  'token-bucket': bucket,
  'leaky-bucket': bucket,
} as const satisfies Record<string, Algorithm>;

export type AlgorithmName = keyof typeof algorithms;
