import type { RequestHandler } from 'express';
import { byStatus, MemoryStore, rateLimit } from '../../src/index.js';
import type { RateLimitHandler, RateLimitOptions, RuleOptions } from '../../src/index.js';
import { FakeClock } from '../../src/testing/index.js';
import { call, serve } from './http.js';
import type { Express, Reply } from './http.js';

/** 2025-12-01T10:43:00.000Z, a whole minute. */
export const START = 1_764_585_780_000;

export interface Limited {
  readonly url: string;
  readonly limiter: RateLimitHandler;
  readonly clock: FakeClock;
  readonly store: MemoryStore;
  /** A request; its answer has the status that it asks for. */
  get(headers?: Record<string, string>, status?: number): Promise<Reply>;
}

/** An app behind a limiter in a store of its own, whose clock stands still until the test moves it. */
export async function limited(
  express: Express,
  options: Partial<RuleOptions & RateLimitOptions> | { readonly rules: readonly RuleOptions[] },
  { handler, trustProxy = 1 }: { handler?: RequestHandler; trustProxy?: unknown } = {},
): Promise<Limited> {
  const clock = new FakeClock(START);
  const store = new MemoryStore({ clock });
  const limiter = rateLimit({ store, outcome: byStatus, ...options } as RateLimitOptions);
  const app = express();
  app.set('trust proxy', trustProxy);
  app.set('env', 'test');
  const answer: RequestHandler = (req, res) => void res.status(Number(req.get('X-Answer') ?? 200)).send('ok');
  app.use(limiter, handler ?? answer);
  const url = await serve(app);
  const get = (headers: Record<string, string> = {}, status = 200) =>
    call(url, { headers: { 'X-Answer': String(status), ...headers } });
  return { url, limiter, clock, store, get };
}

/** Five failures in a quarter of an hour, all of one subject; strict, so each request holds a unit until its outcome is known. */
export const failures = (options: Partial<RateLimitOptions> = {}): RateLimitHandler =>
  rateLimit({
    scope: 'login',
    limit: 5,
    windowSec: 900,
    algorithm: 'fixed-window',
    count: 'failures',
    keyFn: () => 'alice',
    outcome: byStatus,
    store: new MemoryStore(),
    ...options,
  } as RateLimitOptions);
