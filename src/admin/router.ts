import express from 'express';
import type { NextFunction, Request, Response, Router } from 'express';
import type { StoreFactories } from '../core/limiter-options.js';
import { readJson } from '../http/body.js';
import { problem, Refusal } from '../http/reply.js';
import type { Reply } from '../http/reply.js';
import { pathOf, queryOf, send } from '../http/send.js';
import { Gatekeeper } from './access.js';
import { EventHub } from './event-hub.js';
import { checkOptions } from './options.js';
import type { Access, AdminOptions } from './options.js';
import { operatorsPage } from './page/document.js';
import { adminRoutes } from './routes.js';
import type { Route, Stream } from './routes.js';
import { ManagedScopes } from './scopes.js';
import { Watch } from './watch.js';

/** A router of Express 4 or 5. */
export interface AdminRouter extends Router {
  /** Ends the live streams, which would keep a server from closing, and listens to the limiters no more. */
  close(): void;
}

/** Makes `adminRouter` for the face, which hands the stores in. */
export function adminRouterMaker(factories: StoreFactories): (options: AdminOptions) => AdminRouter {
  return options => {
    const limiters = checkOptions(options);
    const { authorize } = options;
    const gatekeeper = new Gatekeeper(options, factories);
    const scopes = new ManagedScopes(limiters);
    const hub = new EventHub();
    const watch = new Watch(limiters, scopes, hub);
    const routes = adminRoutes(scopes, watch, hub);
    const page = operatorsPage(authorize === undefined ? 'key' : 'session');

    const accessOf = async (req: Request): Promise<Access | undefined> => {
      if (authorize === undefined) return gatekeeper.authorise(req.headers);
      const answer: unknown = await authorize(req);
      // Strictly true: an object or a forgotten comparison must not open the door.
      if (answer === true) return 'all';
      return answer === 'read' ? 'read' : undefined;
    };

    const run = async (req: Request, known: readonly Route[]): Promise<Reply | Stream> => {
      const access = await accessOf(req);
      if (access === undefined) return gatekeeper.turnAway(req.headers, req.ip ?? req.socket.remoteAddress);
      if (access === 'read' && methodOf(req) !== 'GET') {
        return problem(403, 'This access is read-only: it opens GET routes.');
      }
      const route = known.find(({ method }) => method === methodOf(req));
      if (route === undefined) return notAllowed(known.map(({ method }) => method));
      return route.run({ access, query: queryOf(req), body: () => readJson(req) });
    };

    const showPage = async (req: Request): Promise<Reply> => {
      if (!gatekeeper.isConfigured) return gatekeeper.turnAway(req.headers, undefined);
      return methodOf(req) === 'GET' ? page : notAllowed(['GET']);
    };

    const router = express.Router();
    router.use((req: Request, res: Response, next: NextFunction) => {
      const path = pathOf(req);
      const known = routes.get(path);
      if (known === undefined && path !== '/') {
        next();
        return;
      }
      (known === undefined ? showPage(req) : run(req, known))
        .then(answer => {
          if (typeof answer !== 'function') send(req, res, answer);
          else if (req.method === 'HEAD') send(req, res, { status: 200, body: '' });
          else answer(res);
        })
        .catch((error: unknown) => {
          if (error instanceof Refusal) send(req, res, error.reply);
          else next(error);
        });
    });
    return Object.assign(router, {
      close: () => {
        watch.end();
        hub.end();
      },
    });
  };
}

const methodOf = (req: Request): string => (req.method === 'HEAD' ? 'GET' : req.method);

function notAllowed(methods: readonly string[]): Reply {
  return problem(405, 'This route has no such method.', {}, { Allow: methods.join(', ') });
}
