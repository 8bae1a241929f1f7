import type { RequestHandler } from 'express';
import defaultExport, { getRateLimit, MemoryStore, rateLimit, subjectHash } from 'limitkeeper';
import type { RateLimitHandler, RateLimitOptions } from 'limitkeeper';
import { call, closeServers, EXPRESSES, pause, serve, statuses, times } from '../support/http.js';
import { forgetWarnings, watchWarnings } from '../support/warnings.js';

afterEach(closeServers);

const one = (options: Partial<RateLimitOptions> = {}): RateLimitHandler =>
  rateLimit({
    scope: 'api.ip',
    limit: 2,
    windowSec: 60,
    algorithm: 'fixed-window',
    store: new MemoryStore(),
    ...options,
  } as RateLimitOptions);

const PREFLIGHT = {
  method: 'OPTIONS',
  headers: { Origin: 'https://shop.example', 'Access-Control-Request-Method': 'POST' },
};

/** What the package `cors` does, for one origin. */
const cors: RequestHandler = (req, res, next) => {
  res.set({
    'Access-Control-Allow-Origin': 'https://shop.example',
    'Access-Control-Expose-Headers': 'Retry-After, X-RateLimit-Remaining',
    Vary: 'Origin',
  });
  if (req.method === 'OPTIONS') res.sendStatus(204);
  else next();
};

test('the default export is rateLimit', () => {
  expect(defaultExport).toBe(rateLimit);
});

test('the verbs of its limiter are on the middleware', async () => {
  const limit = one({ keyFn: () => 'alice' });
  const ended: string[] = [];
  const off = limit.on('blocked', ({ scope }) => ended.push(scope));
  off();
  await limit.block('alice', 60);
  expect((await limit.peek('alice')).reason).toBe('blocked');
  await limit.unblock('alice');
  await limit.limiter.consume('alice');
  expect((await limit.peek('alice')).remaining).toBe(1);
  expect(await limit.inspect('alice')).toHaveLength(1);
  await limit.forgive('alice');
  expect((await limit.peek('alice')).remaining).toBe(2);
  await limit.limiter.consume('alice');
  await limit.reset('alice');
  expect((await limit.peek('alice')).remaining).toBe(2);
  await limit.limiter.consume('alice');
  await limit.resetAll();
  expect((await limit.peek('alice')).remaining).toBe(2);
  await limit.close();
  expect(ended).toEqual([]);
});

test('it takes three parameters, so that Express does not take it for an error handler, and has its limiter on it', () => {
  const limiter = one();
  expect(limiter).toHaveLength(3);
  expect(limiter.limiter.scopes).toEqual(['api.ip']);
});

describe.each(EXPRESSES)('%s', (_name, express) => {
  async function start(...handlers: RequestHandler[]): Promise<string> {
    const app = express();
    app.use(...handlers);
    app.use((_req, res) => res.send('ok'));
    return serve(app);
  }

  test('lets the limit pass and refuses the rest, with headers on every answer', async () => {
    const url = await start(one());
    const now = Math.floor(Date.now() / 1000);
    const replies = [await call(url), await call(url), await call(url)];
    expect(replies.map(({ status, headers }) => [status, headers['x-ratelimit-remaining']])).toEqual([
      [200, '1'],
      [200, '0'],
      [429, '0'],
    ]);
    for (const { headers } of replies) {
      expect(headers['x-ratelimit-limit']).toBe('2');
      expect(headers['ratelimit-policy']).toBe('"api.ip";q=2;w=60');
      expect(Number(headers['x-ratelimit-reset'])).toBeGreaterThanOrEqual(now + 60);
      expect(Number(headers['x-ratelimit-reset'])).toBeLessThanOrEqual(now + 64);
    }
    expect(Number(replies[2]?.headers['retry-after'])).toBeGreaterThanOrEqual(56);
  });

  test('an error of what is behind next belongs to its caller, and next is called once', async () => {
    const next = jest.fn(() => {
      throw new Error('behind');
    });
    const req = { method: 'GET', headers: {}, ip: '203.0.113.7' };
    const res = { headersSent: true };
    const limiter = one();
    // Made at start, and not by the handler of a request.
    await pause(1);
    expect(() => limiter(req as never, res as never, next)).toThrow('behind');
    expect(next).toHaveBeenCalledTimes(1);
  });

  test('sub-applications and routers count with it like any middleware', async () => {
    const app = express();
    const sub = express();
    sub.get('/x', (_req, res) => res.send('ok'));
    app.use('/api', one(), sub);
    app.get('/free', (_req, res) => res.send('ok'));
    const url = await serve(app);
    expect(await statuses(3, () => call(`${url}/api/x`))).toEqual([200, 200, 429]);
    expect((await call(`${url}/free`)).headers['x-ratelimit-limit']).toBeUndefined();
  });

  describe('skip', () => {
    test.each([
      ['at once', (healthy: boolean) => healthy],
      ['as a promise', async (healthy: boolean) => healthy],
    ])('true (%s) passes uncounted, without headers', async (_how, give) => {
      const store = new MemoryStore();
      const url = await start(one({ store, skip: req => give(req.path === '/health') }));
      expect(await statuses(5, () => call(`${url}/health`))).toEqual(times(5, 200));
      expect((await call(`${url}/health`)).headers['x-ratelimit-limit']).toBeUndefined();
      expect(store.size).toBe(0);
      expect(await statuses(3, () => call(url))).toEqual([200, 200, 429]);
    });

    test('asks nothing else', async () => {
      const keyFn = jest.fn(() => 'alice');
      await call(await start(one({ skip: () => true, keyFn })));
      expect(keyFn).not.toHaveBeenCalled();
    });
  });

  describe('CORS', () => {
    test('S1: a preflight counts like any request', async () => {
      const url = await start(one(), cors);
      expect(await statuses(3, () => call(url, PREFLIGHT))).toEqual([204, 204, 429]);
    });

    test('where cors comes before the limiter, it answers preflights itself, uncounted', async () => {
      const url = await start(cors, one());
      expect(await statuses(5, () => call(url, PREFLIGHT))).toEqual(times(5, 204));
      expect(await statuses(3, () => call(url))).toEqual([200, 200, 429]);
    });

    test('mounted after cors, a 429 carries its headers, so that a page can read Retry-After', async () => {
      const url = await start(cors, one({ limit: 0 }));
      const { status, headers } = await call(url, { headers: { Origin: 'https://shop.example' } });
      expect(status).toBe(429);
      expect(headers).toMatchObject({
        'access-control-allow-origin': 'https://shop.example',
        'access-control-expose-headers': 'Retry-After, X-RateLimit-Remaining',
        vary: 'Origin, Accept',
      });
    });
  });

  describe('several limiters on one response', () => {
    const of = (scope: string, limit: number, windowSec: number, more: object = {}) =>
      one({ scope, limit, windowSec, ...more });

    test.each(['the tight one first', 'the wide one first'])(
      '%s: the trio shows it, the fields show both',
      async order => {
        const limiters = [of('minute', 2, 60), of('day', 100, 86_400)];
        const url = await start(...(order === 'the tight one first' ? limiters : limiters.reverse()));
        const { headers } = await call(url);
        expect([headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]).toEqual(['2', '1']);
        const policies = String(headers['ratelimit-policy']).split(', ').sort();
        expect(policies).toEqual(['"day";q=100;w=86400', '"minute";q=2;w=60']);
        await call(url);
        const refusal = await call(url);
        expect([refusal.status, refusal.headers['x-ratelimit-limit']]).toEqual([429, '2']);
      },
    );

    test('headers: false keeps one of them silent', async () => {
      const { headers } = await call(await start(of('token', 1, 60, { headers: false }), of('ip', 100, 60)));
      expect([headers['x-ratelimit-limit'], headers['ratelimit-policy']]).toEqual(['100', '"ip";q=100;w=60']);
    });

    test('each speaks in its own families', async () => {
      const { headers } = await call(
        await start(
          of('a', 5, 60, { headers: { legacy: false } }),
          of('b', 9, 60, { headers: { standard: false } }),
        ),
      );
      expect([headers['x-ratelimit-limit'], headers['ratelimit-policy']]).toEqual(['9', '"a";q=5;w=60']);
    });

    test('what one refuses, the earlier has counted: to have all or none, make them rules of one', async () => {
      const day = of('day', 100, 86_400);
      const url = await start(day, of('minute', 1, 60));
      await statuses(3, () => call(url));
      expect((await day.limiter.peek('127.0.0.1')).remaining).toBe(97);
    });
  });

  describe('mounted twice on the way of a request', () => {
    test('it counts once, and says so once', async () => {
      forgetWarnings();
      const warnings = watchWarnings();
      const limiter = one({ limit: 10 });
      const url = await start(limiter, limiter);
      expect((await call(url)).headers['x-ratelimit-remaining']).toBe('9');
      await call(url);
      expect(warnings).toEqual(['LIMITKEEPER_MOUNTED_TWICE']);
      jest.restoreAllMocks();
    });

    test('two paths, of which a request takes one, are not twice', async () => {
      forgetWarnings();
      const warnings = watchWarnings();
      const limiter = one({ limit: 10 });
      const app = express();
      app.get('/a', limiter, (_req, res) => res.send('a'));
      app.get('/b', limiter, (_req, res) => res.send('b'));
      const url = await serve(app);
      await call(`${url}/a`);
      expect((await call(`${url}/b`)).headers['x-ratelimit-remaining']).toBe('8');
      expect(warnings).toEqual([]);
      jest.restoreAllMocks();
    });
  });

  test('without a store limiters count in one that the process shares, by scope', async () => {
    const scope = `shared.${_name}`;
    const options = { scope, limit: 3, windowSec: 60, keyFn: () => 'alice' };
    const [a, b] = [rateLimit(options), rateLimit(options)];
    expect((await call(await start(a))).headers['x-ratelimit-remaining']).toBe('2');
    expect((await call(await start(b))).headers['x-ratelimit-remaining']).toBe('1');
    await a.limiter.resetAll();
  });

  test('listeners hear of requests by the hash of the subject, never in plain', async () => {
    const limiter = one({ limit: 1, keyFn: () => 'alice', blockSec: 60 });
    const heard: unknown[] = [];
    for (const name of ['allowed', 'refused', 'blocked'] as const) {
      limiter.limiter.on(name, ({ scope, subjectHash: hash }) => heard.push([name, scope, hash]));
    }
    const url = await start(limiter);
    await statuses(2, () => call(url));
    const hash = subjectHash('alice');
    expect(heard).toEqual([
      ['allowed', 'api.ip', hash],
      ['blocked', 'api.ip', hash],
      ['refused', 'api.ip', hash],
    ]);
  });

  test('no name of the request or the response is touched; the state hangs under one symbol', async () => {
    const properties = (object: object) => Reflect.ownKeys(object).map(String).sort();
    const seen: string[][] = [];
    const look: RequestHandler = (req, res, next) => {
      seen.push([...properties(req), '|', ...properties(res)]);
      next();
    };
    await call(await start(look, one(), look, (req, _res, next) => (getRateLimit(req), next()), look));
    const added = (now: readonly string[]) => now.filter(name => !seen[0]!.includes(name));
    expect(added(seen[1]!)).toEqual(['Symbol(limitkeeper.request.v3)']);
    expect(added(seen[2]!)).toEqual(['Symbol(limitkeeper.request.v3)']);
  });
});
