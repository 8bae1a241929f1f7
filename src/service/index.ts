import { defaultMemoryStore } from '../stores/memory/default-store.js';
import { MemoryStore } from '../stores/memory/memory-store.js';
import { rateRouterMaker } from './router.js';

/**
 * A limiter for programs in other languages, over HTTP: `POST /rate/check`, `GET /rate/status`, `DELETE /rate/reset/:userId`.
 * A sliding log counts the requests of each user at each endpoint.
 *
 * `X-User-Id` is taken on trust: mount it where only services reach it, or set `serviceKey`.
 *
 * @example
 * app.use(rateRouter({ limit: 10, windowSec: 60, adminKey: process.env.RATE_ADMIN_KEY }));
 * @throws TypeError or RangeError with a stable `code`, e.g. `ERR_LIMITKEEPER_WEAK_KEY` for a key under 16 characters.
 */
export const rateRouter = rateRouterMaker({
  defaultStore: defaultMemoryStore,
  localStore: () => new MemoryStore(),
});

export type { RateServiceOptions } from './options.js';
export type { RateRouter } from './router.js';
