// A shop with a limited login, and the operators' page beside it.
import express from 'express';
import type { Express, Request } from 'express';
import { clientIp, rateLimit } from 'limitkeeper';
import type { Store } from 'limitkeeper';
import { adminRouter } from 'limitkeeper/admin';
import type { AdminRouter } from 'limitkeeper/admin';

export interface Shop {
  readonly app: Express;
  readonly admin: AdminRouter;
}

export interface ShopOptions {
  /** Opens everything at /ops/limits. Without it, nothing opens. */
  readonly adminKey: string | undefined;
  /** Lets people look, and change nothing. */
  readonly readKey?: string | undefined;
  /** Shared by all processes, in production. Default: the memory of this one. */
  readonly store?: Store;
}

function emailOf({ query: { email } }: Request): string {
  // One spelling for one account. Without an e-mail, all share a quota: nobody logs in like that.
  return typeof email === 'string' && email !== '' ? email.toLowerCase() : 'nobody';
}

export function createShop({ adminKey, readKey, store }: ShopOptions): Shop {
  const where = store === undefined ? {} : { store };
  const pages = rateLimit({ scope: 'pages.ip', limit: 120, windowSec: 60, blockSec: 120, ...where });
  // The parts of the key are what an operator can look for later: the e-mail, or the address.
  const login = rateLimit({
    scope: 'login.email_ip',
    limit: 5,
    windowSec: 900,
    blockSec: [900, 3600],
    keyFn: req => [emailOf(req), clientIp(req)],
    ...where,
  });
  // Not yet in force: it shows what it would refuse, and nobody notices.
  const search = rateLimit({ scope: 'search.ip.trial', limit: 30, windowSec: 10, mode: 'shadow', ...where });

  const app = express();
  app.disable('x-powered-by');
  const admin = adminRouter({ limiters: [pages, login, search], adminKey, readKey });
  app.use('/ops/limits', admin);
  app.get('/', pages, (_req, res) => {
    res.send('Welcome to the shop.');
  });
  app.get('/search', pages, search, (_req, res) => {
    res.send('Nothing found.');
  });
  app.post('/login', login, (_req, res) => {
    res.status(401).send('Wrong e-mail or password.');
  });
  return { app, admin };
}
