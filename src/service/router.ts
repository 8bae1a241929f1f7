import express from 'express';
import type { NextFunction, Request, Response, Router } from 'express';
import type { EventName, Listener } from '../core/events.js';
import { hashingOf, makeEngine } from '../core/limiter-options.js';
import type { StoreFactories } from '../core/limiter-options.js';
import { readJson } from '../http/body.js';
import { Keyring } from '../http/keys.js';
import { Refusal } from '../http/reply.js';
import { pathOf, queryOf, send } from '../http/send.js';
import { ANY_SCOPE } from './endpoint.js';
import { checkOptions } from './options.js';
import type { RateServiceOptions } from './options.js';
import { RateChecks } from './rate-checks.js';
import { serve } from './routes.js';

/** A router of Express 4 or 5. */
export interface RateRouter extends Router {
  /** Listens, as `on` of a limiter does; the function that comes back ends it. Scopes are those of endpoints, hashed. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void;
}

/** Makes `rateRouter` for the face, which hands the stores in. */
export function rateRouterMaker(factories: StoreFactories): (options?: RateServiceOptions) => RateRouter {
  return (options = {}) => {
    checkOptions(options);
    const { limit = 10, windowSec = 60, adminKey, serviceKey } = options;
    const engine = makeEngine(options, factories, [ANY_SCOPE]);
    const checks = new RateChecks(engine, hashingOf(options), limit, windowSec);
    const keys = {
      adminKeys: new Keyring(adminKey, 'adminKey'),
      serviceKeys: serviceKey === undefined ? undefined : new Keyring(serviceKey, 'serviceKey'),
    };

    const router = express.Router();
    router.use((req: Request, res: Response, next: NextFunction) => {
      const { method, headers } = req;
      serve(checks, keys, {
        method,
        path: pathOf(req),
        headers,
        query: queryOf(req),
        body: () => readJson(req),
      }).then(
        reply => {
          if (reply === undefined) next();
          else send(req, res, reply);
        },
        (error: unknown) => {
          if (error instanceof Refusal) send(req, res, error.reply);
          else next(error);
        },
      );
    });
    return Object.assign(router, {
      on: <N extends EventName>(name: N, listener: Listener<N>) => engine.events.on(name, listener),
    });
  };
}
