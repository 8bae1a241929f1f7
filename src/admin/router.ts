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
import { operatorsPage, sentencePage } from './page/document.js';
import { adminRoutes } from './routes.js';
import type { Stream } from './routes.js';
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

    /** The access comes first: without it, nobody learns which paths there are. */
    const run = async (req: Request): Promise<Reply | Stream> => {
      const access = await accessOf(req);
      if (access === undefined) return gatekeeper.turnAway(req.headers, req.ip ?? req.socket.remoteAddress);
      const known = routes.get(pathOf(req));
      if (known === undefined) return problem(404, 'There is no such route here.');
      if (access === 'read' && methodOf(req) !== 'GET') {
        return problem(403, 'This access is read-only: it opens GET routes.');
      }
      const route = known.find(({ method }) => method === methodOf(req));
      if (route === undefined) return notAllowed(known.map(({ method }) => method));
      return route.run({ access, query: queryOf(req), body: () => readJson(req) });
    };

    const answer = async (req: Request): Promise<Reply | Stream> => {
      if (!gatekeeper.isConfigured) return closed(req);
      if (pathOf(req) !== '/') return run(req);
      return methodOf(req) === 'GET' ? page : notAllowed(['GET']);
    };

    const router = express.Router();
    router.use((req: Request, res: Response, next: NextFunction) => {
      answer(req)
        .then(reply => {
          if (typeof reply !== 'function') send(req, res, reply);
          else if (req.method === 'HEAD') send(req, res, { status: 200, body: '' });
          else reply(res);
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

const CLOSED =
  'Closed: no admin key is configured. Set the option adminKey to a secret of 16 characters or more.';

/** No key is configured: closed to everybody. Programs get a problem; a person who opened the page, the same sentence to read. */
function closed(req: Request): Reply {
  return req.accepts(['application/problem+json', 'text/html']) === 'text/html'
    ? sentencePage(403, CLOSED)
    : problem(403, CLOSED);
}

const methodOf = (req: Request): string => (req.method === 'HEAD' ? 'GET' : req.method);

function notAllowed(methods: readonly string[]): Reply {
  return problem(405, 'This route has no such method.', {}, { Allow: methods.join(', ') });
}
