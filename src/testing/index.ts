export { storeConformance } from './conformance/index.js';
export { FakeClock } from './fake-clock.js';
export { replayVectors } from './replay-vectors.js';

export type {
  ConformanceStoreOptions,
  ConformanceSupport,
  StoreFactory,
  TestFunction,
} from './conformance/support.js';
export type { ReplayOptions } from './replay-vectors.js';
export type { Mismatch, VectorCase, VectorCost, VectorRule, VectorStep } from './vectors.js';
