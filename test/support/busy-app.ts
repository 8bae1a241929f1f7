import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { adminRouter } from '../../src/admin/index.js';
import type { AdminOptions } from '../../src/admin/index.js';
import { clientIp, MemoryStore, rateLimit } from '../../src/index.js';
import type { Limiter, Store } from '../../src/index.js';

export interface BusyApp {
  /** Of the page. */
  readonly url: string;
  readonly login: Limiter;
  /** Every request that came, as its URL and headers. */
  readonly requests: { readonly url: string; readonly headers: http.IncomingHttpHeaders }[];
  /** One request as somebody at this address. */
  visit(path: string, address: string, email?: string): Promise<number>;
  /** Requests of many addresses, some a second, until `stop()`. */
  load(perSec: number): void;
  /** No new requests; those under way are waited for. */
  quiet(): Promise<void>;
  stop(): Promise<void>;
}

/** An application with three limiters, the operators' page at /ops/limits, and load on request. */
export async function busyApp(
  options: Omit<AdminOptions, 'limiters'>,
  store: Store = new MemoryStore(),
): Promise<BusyApp> {
  const api = rateLimit({ scope: 'api.ip', limit: 20, windowSec: 10, blockSec: 120, store });
  const login = rateLimit({
    scope: 'login.pair',
    limit: 3,
    windowSec: 900,
    blockSec: [900, 3600],
    failMode: 'local',
    keyFn: req => [String(req.headers['x-email'] ?? 'nobody'), clientIp(req)],
    store,
  });
  const trial = rateLimit({ scope: 'search.trial', limit: 30, windowSec: 10, mode: 'shadow', store });
  const router = adminRouter({ limiters: [api, login, trial], ...options });
  const requests: BusyApp['requests'] = [];
  const app = express();
  app.set('trust proxy', 1);
  app.use((req, _res, next) => {
    requests.push({ url: req.originalUrl, headers: req.headers });
    if (requests.length > 5000) requests.shift();
    next();
  });
  app.get('/api', api, trial, (_req, res) => {
    res.send('ok');
  });
  app.post('/login', login, (_req, res) => {
    res.status(401).send('wrong password');
  });
  app.use('/ops/limits', router);
  const server = http.createServer(app);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = new http.Agent({ keepAlive: true, maxSockets: 20 });
  const underWay = new Set<Promise<unknown>>();
  let timer: NodeJS.Timeout | undefined;

  const visit = (path: string, address: string, email = ''): Promise<number> =>
    new Promise((resolve, reject) => {
      const method = path === '/login' ? 'POST' : 'GET';
      const headers = { 'X-Forwarded-For': address, ...(email === '' ? {} : { 'X-Email': email }) };
      http
        .request({ host: '127.0.0.1', port, path, method, agent, headers }, res => {
          res.resume().on('end', () => {
            resolve(res.statusCode ?? 0);
          });
        })
        .on('error', reject)
        .end();
    });

  const quiet = async (): Promise<void> => {
    clearInterval(timer);
    await Promise.allSettled([...underWay]);
  };

  return {
    url: `http://127.0.0.1:${String(port)}/ops/limits/`,
    login: login.limiter,
    requests,
    visit,
    load: perSec => {
      let i = 0;
      timer = setInterval(() => {
        i += 1;
        // Most come from many addresses, every fifth from one that is too eager.
        const address = i % 5 === 0 ? '198.51.100.99' : `203.0.113.${String(i % 40)}`;
        const visiting = visit('/api', address).catch(() => 0);
        underWay.add(visiting);
        void visiting.then(() => underWay.delete(visiting));
      }, 1000 / perSec);
    },
    quiet,
    stop: async () => {
      await quiet();
      agent.destroy();
      router.close();
      server.closeAllConnections();
      await new Promise(done => server.close(done));
    },
  };
}
