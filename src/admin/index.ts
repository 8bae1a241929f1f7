import { defaultMemoryStore } from '../stores/memory/default-store.js';
import { MemoryStore } from '../stores/memory/memory-store.js';
import { adminRouterMaker } from './router.js';

/**
 * What somebody on call needs when a customer is locked out: a page for people and routes for programs, to see who is
 * blocked, and to reset, block and unblock. Every route but the page needs a key.
 *
 * @example
 * app.use('/admin/limits', adminRouter({ limiters: [login, api], adminKey: process.env.LIMITS_ADMIN_KEY }));
 * @throws TypeError or RangeError with a stable `code`, e.g. `ERR_LIMITKEEPER_WEAK_KEY` for a key under 16 characters.
 */
export const adminRouter = adminRouterMaker({
  defaultStore: defaultMemoryStore,
  // For addresses that try keys: as many as matter, and no 50 MB for whoever has a botnet.
  localStore: () => new MemoryStore({ maxKeys: 10_000 }),
});

export type { AdminOptions } from './options.js';
export type { AdminRouter } from './router.js';
