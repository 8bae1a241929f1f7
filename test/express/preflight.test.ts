// S1: anyone can forge a CORS preflight, so it counts like any request.
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import methodOverride from 'method-override';
import type { Application, RequestHandler } from 'express';
import { byStatus, MemoryStore, rateLimit } from '../../src/index.js';
import type { RateLimitHandler, RateLimitOptions } from '../../src/index.js';
import { apiLimits, loginLimits } from '../../src/presets/index.js';
import { isPreflight } from '../../src/express/preflight.js';
import type { Call } from '../support/http.js';
import { call, closeServers, EXPRESSES, serve, tally } from '../support/http.js';

afterEach(closeServers);

const FORGED = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' };

const one = (options: Partial<RateLimitOptions> = {}): RateLimitHandler =>
  rateLimit({
    scope: 'x',
    limit: 5,
    windowSec: 60,
    algorithm: 'fixed-window',
    store: new MemoryStore(),
    ...options,
  } as RateLimitOptions);

/** A handler that knows how often it did its work. */
function working(status = 200): { handler: RequestHandler; work: () => number } {
  let count = 0;
  return {
    handler: (_req, res) => {
      count += 1;
      res.status(status).send('done');
    },
    work: () => count,
  };
}

async function flood(app: Application, count: number, requestOf: (i: number) => Call, path: string) {
  app.set('env', 'test');
  const url = await serve(app);
  const replies = [];
  for (let i = 0; i < count; i += 1) replies.push(await call(url + path, requestOf(i)));
  return tally(replies);
}

const forged = (more: Call = {}): Call => ({
  ...more,
  method: 'OPTIONS',
  headers: { ...FORGED, ...more.headers },
});

describe.each(EXPRESSES)('S1: a forged preflight in %s', (_name, express) => {
  test.each(['use', 'all'] as const)('guesses no passwords where the login is mounted with %s', async way => {
    const app = express();
    const { handler, work } = working(401);
    app[way]('/login', express.json(), loginLimits({ store: new MemoryStore() }), handler);
    const guess = (i: number) => forged({ body: { email: 'v@x.example', password: `pw-${i}` } });
    expect(await flood(app, 50, guess, '/login')).toEqual({ 401: 5, 429: 45 });
    expect(work()).toBe(5);
  });

  test('looks up no more invented tokens than a GET does', async () => {
    const app = express();
    const { handler: authenticate, work } = working(401);
    app.use('/api', apiLimits({ store: new MemoryStore(), invalidToken: { limit: 10 } }), authenticate);
    const invented = (i: number) => forged({ headers: { Authorization: `Bearer guess-${i}` } });
    expect(await flood(app, 40, invented, '/api/x')).toEqual({ 401: 10, 429: 30 });
    expect(work()).toBe(10);
  });

  test('reaches a handler that answers every method as often as the limit says', async () => {
    const app = express();
    const { handler, work } = working();
    app.use('/graphql', one(), handler);
    await flood(app, 20, () => forged(), '/graphql?query={expensive}');
    expect(work()).toBe(5);
  });

  describe.each([
    ['counted', undefined],
    ['left out', false],
  ] as const)('with preflights %s, and method-override', (_how, countPreflight) => {
    const options = countPreflight === undefined ? {} : { countPreflight };
    const override = methodOverride('X-HTTP-Method-Override', { methods: null } as never);

    test('before the limiter: OPTIONS that became POST is no preflight', async () => {
      const app = express();
      const { handler, work } = working();
      app.use(override, one(options));
      app.post('/m', handler);
      const sent = forged({ headers: { 'X-HTTP-Method-Override': 'POST' } });
      expect(await flood(app, 12, () => sent, '/m')).toEqual({ 200: 5, 429: 7 });
      expect(work()).toBe(5);
    });

    test('before the limiter: POST that became OPTIONS is none either', async () => {
      const app = express();
      const { handler, work } = working();
      app.use(override, one(options));
      app.all('/m', handler);
      const sent = { method: 'POST', headers: { ...FORGED, 'X-HTTP-Method-Override': 'OPTIONS' } };
      expect(await flood(app, 12, () => sent, '/m')).toEqual({ 200: 5, 429: 7 });
      expect(work()).toBe(5);
    });

    test('behind the limiter: OPTIONS that becomes POST is counted unless it was left out', async () => {
      const app = express();
      const { handler, work } = working();
      app.use(one(options), override);
      app.post('/m', handler);
      await flood(app, 12, () => forged({ headers: { 'X-HTTP-Method-Override': 'POST' } }), '/m');
      // The danger that the docs name.
      expect(work()).toBe(countPreflight === false ? 12 : 5);
    });
  });

  describe('countPreflight: false', () => {
    test('leaves a preflight out, whatever is left of the limit', async () => {
      const app = express();
      app.use(one({ countPreflight: false, limit: 0 }), (_req, res) => res.sendStatus(204));
      const { status, headers } = await call(await serve(app), forged());
      expect([status, headers['x-ratelimit-limit']]).toEqual([204, undefined]);
    });

    test.each<[what: string, request: Call]>([
      ['a GET', { method: 'GET', headers: FORGED }],
      ['without Origin', { method: 'OPTIONS', headers: { 'Access-Control-Request-Method': 'POST' } }],
      ['that asks for no method', { method: 'OPTIONS', headers: { Origin: FORGED.Origin } }],
      ['with a body', forged({ body: { password: 'guess' } })],
      ['with a body in chunks', forged({ headers: { 'Transfer-Encoding': 'chunked' } })],
      ['with a token', forged({ headers: { Authorization: 'Bearer guess' } })],
      ['with a cookie', forged({ headers: { Cookie: 'session=guess' } })],
    ])('but not what no browser sends: one %s', async (_what, request) => {
      const app = express();
      app.use(one({ countPreflight: false, limit: 0 }));
      expect((await call(await serve(app), request)).status).toBe(429);
    });

    test('guesses of passwords and tokens stay limited', async () => {
      const app = express();
      const { handler, work } = working(401);
      const limits = { store: new MemoryStore(), countPreflight: false };
      app.use('/login', express.json(), loginLimits(limits), handler);
      await flood(app, 20, i => forged({ body: { email: 'v@x.example', password: `pw-${i}` } }), '/login');
      expect(work()).toBe(5);
    });
  });
});

describe('S1: over HTTP/2, where no header announces a body', () => {
  test('one with a body is no preflight', async () => {
    const limiter = one({ countPreflight: false, limit: 0, outcome: byStatus });
    const server = http2.createServer((req, res) => {
      expect(isPreflight(req)).toBe(req.headers['x-body'] === undefined);
      limiter(req as never, res as never, () => {
        res.end('passed');
      });
    });
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const send = (headers: Record<string, string>, body?: string): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const names = { ':method': 'OPTIONS', ...headers };
        const stream = session.request(
          {
            origin: FORGED.Origin,
            'access-control-request-method': 'POST',
            ...names,
          },
          { endStream: body === undefined },
        );
        stream.on('response', response => {
          resolve(response[':status']);
        });
        stream.on('error', reject);
        stream.resume();
        if (body !== undefined) stream.end(body);
      });
    try {
      expect(await send({})).toBe(200);
      expect(await send({ 'x-body': '1' }, 'password=guess')).toBe(429);
    } finally {
      session.close();
      await new Promise(done => server.close(done));
    }
  });
});
