// A rate-check service: programs in any language ask it over HTTP whether a user may go on.
import express from 'express';
import type { Express } from 'express';
import type { Store } from 'limitkeeper';
import { rateRouter } from 'limitkeeper/service';

export interface ServiceOptions {
  /** Opens DELETE /rate/reset. Without it, nobody can reset. */
  readonly adminKey: string | undefined;
  /** Asked of every program. Without it, whoever reaches the port may ask for any user. */
  readonly serviceKey?: string | undefined;
  /** Shared by all processes, in production. Default: the memory of this one. */
  readonly store?: Store;
}

export function createService({ adminKey, serviceKey, store }: ServiceOptions): Express {
  const rates = rateRouter({
    limit: 10,
    windowSec: 60,
    adminKey,
    serviceKey,
    ...(store === undefined ? {} : { store }),
  });
  // Requests go on while the store is away, uncounted: somebody should hear of it.
  rates.on('degraded', ({ error }) => {
    console.error('The store of the rate service is away:', error.code);
  });
  const app = express();
  app.disable('x-powered-by');
  app.use(rates);
  return app;
}
