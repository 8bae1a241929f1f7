import { Limiter } from './core/limiter.js';
import type { LimiterOptions, StoreFactories } from './core/limiter-options.js';
import { middlewareMaker } from './express/middleware.js';
import type { Backend, Store } from './core/store.js';
import { backendStore as storeOf } from './stores/backend-store.js';
import { defaultMemoryStore } from './stores/memory/default-store.js';
import { MemoryStore } from './stores/memory/memory-store.js';

const stores: StoreFactories = { defaultStore: defaultMemoryStore, localStore: () => new MemoryStore() };

/**
 * Limits the requests that pass through it.
 *
 * @example
 * app.use('/api', rateLimit({ scope: 'api.ip', limit: 120, windowSec: 60, blockSec: 120 }));
 * @throws TypeError or RangeError with a stable `code` for every mistake in the options.
 */
export const rateLimit = middlewareMaker(stores);
export default rateLimit;

/**
 * A limiter without Express, for other servers, sockets and jobs.
 *
 * @example
 * const limiter = createLimiter({ scope: 'mail', limit: 100, windowSec: 3600 });
 * const decision = await limiter.consume('alice', { cost: 3 });
 * @throws TypeError or RangeError with a stable `code` for every mistake in the options.
 */
export function createLimiter(options: LimiterOptions): Limiter {
  return new Limiter(options, stores);
}

/**
 * A full store on top of a {@link Backend}: every algorithm and operation comes from `decide`, the backend only keeps
 * cells. For servers that run no code of ours, and for stores of third parties; prove yours with `storeConformance` of
 * `limitkeeper/testing`.
 *
 * A cell that the backend answers in a form that nobody of this version wrote counts as absent and is overwritten by the
 * next change: a damaged row locks nobody out.
 *
 * @example
 * const store = backendStore(myBackend);
 * app.use(rateLimit({ scope: 'api.ip', limit: 120, windowSec: 60, store }));
 */
export function backendStore(backend: Backend): Store {
  return storeOf(backend);
}

export { MemoryStore };
export { getRateLimit } from './express/handle.js';
export { byStatus } from './express/outcome.js';
export { clientIp } from './express/client-ip.js';
export { decisionHeaders } from './express/headers.js';
export { problemBody } from './express/problem.js';
export { Check } from './core/check.js';
export { subjectHash } from './core/subject.js';
export { isLimitkeeperError } from './core/errors.js';

export type { CallOptions, Costs, PlanOrUnlimited, Reservation, Subjects } from './core/call.js';
export type { Block } from './core/block.js';
export type { Cell, Counter } from './core/cell.js';
export type { Clock } from './core/clock.js';
export type { Decision, Reading, Reason, Receipt, ReceiptEntry, RuleReading } from './core/decision.js';
export type { ErrorCode, LimitkeeperError } from './core/errors.js';
export type { EventName, FailMode, LimiterEvents, Listener, RuleEvent } from './core/events.js';
export type { Limiter } from './core/limiter.js';
export type { LimiterOptions, LimiterRule, LimiterSettings } from './core/limiter-options.js';
export type { HashedSubject, Operation } from './core/operation.js';
export type { Mode, Plan, Rule, RuleSettings } from './core/rule.js';
export type {
  Backend,
  BlockEntry,
  BlockPage,
  BlockQuery,
  CellKey,
  Store,
  StoredCell,
  Transaction,
  Write,
} from './core/store.js';
export type { SubjectKey, SubjectPart } from './core/subject.js';
export type { AlgorithmName } from './algorithms/index.js';
export type { RateLimitHandle, ScopeHandle } from './express/handle.js';
export type { HeaderOptions } from './express/headers.js';
export type { Problem, ProblemOptions } from './express/problem.js';
export type { RateLimitHandler, RateLimitOptions, RequestOutcome, RuleOptions } from './express/types.js';
