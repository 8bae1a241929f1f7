// Reports about windows, blocks and what is told of them. The ids name the rows of a list of public reports.
import defaultExport, * as library from 'limitkeeper';
import { getRateLimit, MemoryStore, rateLimit } from 'limitkeeper';
import { call, closeServers, EXPRESSES, serve, statuses, times } from '../support/http.js';
import { limited, START } from '../support/limited.js';

afterEach(async () => {
  jest.restoreAllMocks();
  await closeServers();
});

const alice = { keyFn: () => 'alice', algorithm: 'fixed-window' } as const;
/** The login recipe: five failures in a quarter of an hour block for a quarter of an hour. */
const LOGIN = {
  ...alice,
  scope: 'login',
  limit: 5,
  windowSec: 900,
  blockSec: 900,
  count: 'failures',
} as const;

describe.each(EXPRESSES)('%s', (_name, express) => {
  test('P24: who keeps hammering stays out for the block, which begins when the limit is crossed', async () => {
    const { get, clock } = await limited(express, {
      ...alice,
      scope: 'x',
      limit: 10,
      windowSec: 10,
      blockSec: 60,
    });
    expect(await statuses(11, () => get())).toEqual([...times(10, 200), 429]);
    for (let second = 1; second < 60; second += 1) {
      clock.advance(1000);
      const { status, headers } = await get();
      // And no attempt makes it longer.
      expect([status, headers['retry-after']]).toEqual([429, String(60 - second)]);
    }
    clock.advance(1000);
    expect((await get()).status).toBe(200);
  });

  test('P25: the fifth failure itself says that the block has begun; the right password comes too late', async () => {
    const { get } = await limited(express, LOGIN);
    for (let i = 1; i < 5; i += 1) expect((await get({}, 401)).headers['retry-after']).toBeUndefined();
    const fifth = await get({}, 401);
    expect([fifth.status, fifth.headers['x-ratelimit-remaining'], fifth.headers['retry-after']]).toEqual([
      401,
      '0',
      '900',
    ]);
    expect((await get({}, 200)).status).toBe(429);
  });

  test('P45: one user’s window does not end with another’s, and a block does not end with any window', async () => {
    const { get, clock } = await limited(express, {
      scope: 'x',
      algorithm: 'fixed-window',
      limit: 1,
      windowSec: 180,
      blockSec: 180,
      keyFn: req => req.get('X-User') ?? '',
    });
    const as = (user: string) => async () => (await get({ 'X-User': user })).status;
    expect(await as('ann')()).toBe(200);
    clock.advance(179_000);
    expect([await as('bob')(), await as('bob')()]).toEqual([200, 429]);
    clock.advance(1000);
    expect([await as('ann')(), await as('bob')()]).toEqual([200, 429]);
    clock.advance(178_999);
    expect(await as('bob')()).toBe(429);
    clock.advance(1);
    expect(await as('bob')()).toBe(200);
  });

  test('P47: the window is set once, and Retry-After follows it', async () => {
    for (const windowSec of [1, 90, 3600, 86_400]) {
      const { get } = await limited(express, { ...alice, scope: 'x', limit: 1, windowSec });
      await get();
      expect((await get()).headers).toMatchObject({
        'retry-after': String(windowSec),
        'ratelimit-policy': `"x";q=1;w=${String(windowSec)}`,
      });
    }
  });

  test('P48: the reset that is told is the true one, whether windows begin with the first request or on the hour', async () => {
    for (const [align, seconds] of [
      ['first-hit', 3600],
      // 10:43 is 17 minutes before the hour.
      ['epoch', 17 * 60],
    ] as const) {
      const { get, clock } = await limited(express, {
        ...alice,
        scope: 'x',
        limit: 1,
        windowSec: 3600,
        align,
      });
      expect((await get()).headers['x-ratelimit-reset']).toBe(String(START / 1000 + seconds));
      clock.advance(seconds * 1000 - 1);
      expect((await get()).status).toBe(429);
      clock.advance(1);
      expect((await get()).status).toBe(200);
    }
  });

  test('P49: without a block a client is free when the window is, however often it asked', async () => {
    const { get, clock } = await limited(express, { ...alice, scope: 'x', limit: 5, windowSec: 10 });
    const seen: number[] = [];
    for (let i = 0; i < 10; i += 1) {
      seen.push((await get()).status);
      clock.advance(1000);
    }
    expect(seen).toEqual([...times(5, 200), ...times(5, 429)]);
    expect((await get()).status).toBe(200);
  });

  test('P51: a window and a block of 30 days hold, and no timer overflows', async () => {
    const timeout = jest.spyOn(global, 'setTimeout');
    const month = 30 * 86_400;
    const { get, clock } = await limited(express, {
      ...alice,
      scope: 'x',
      limit: 1,
      windowSec: month,
      blockSec: month,
    });
    expect(await statuses(2, () => get())).toEqual([200, 429]);
    clock.advance(month * 1000 - 1);
    expect((await get()).status).toBe(429);
    clock.advance(1);
    expect((await get()).status).toBe(200);
    for (const [, ms] of timeout.mock.calls) expect(ms ?? 0).toBeLessThan(2 ** 31);
  });

  test('P53: of two limiters on a route both policies are shown, and the trio is that of the tighter', async () => {
    const app = express();
    const store = new MemoryStore();
    app.use(
      rateLimit({ ...alice, scope: 'minute', limit: 10, windowSec: 60, store }),
      rateLimit({ ...alice, scope: 'day', limit: 1000, windowSec: 86_400, store }),
      (_req, res) => res.send('ok'),
    );
    const { headers } = await call(await serve(app));
    expect(headers['ratelimit-policy']).toBe('"minute";q=10;w=60, "day";q=1000;w=86400');
    expect(headers['ratelimit']).toMatch(/^"minute";r=9;t=\d+, "day";r=999;t=\d+$/);
    expect([headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]).toEqual(['10', '9']);
  });

  test('P54: which of two limiters speaks can be chosen', async () => {
    const app = express();
    const store = new MemoryStore();
    app.use(
      rateLimit({ scope: 'token', limit: 5, windowSec: 60, keyFn: () => 'token', store }),
      rateLimit({ scope: 'ip', limit: 3, windowSec: 60, store, headers: false }),
      (_req, res) => res.send('ok'),
    );
    const { headers } = await call(await serve(app));
    expect([headers['x-ratelimit-limit'], headers['ratelimit-policy']]).toEqual(['5', '"token";q=5;w=60']);
  });

  describe('P58: a page of another origin', () => {
    const allow = {
      'Access-Control-Allow-Origin': 'https://shop.example',
      'Access-Control-Expose-Headers': 'Retry-After, RateLimit, RateLimit-Policy',
    };

    test('can read the 429 and its Retry-After where the limiter stands behind cors', async () => {
      const app = express();
      app.use((_req, res, next) => {
        res.set(allow);
        next();
      });
      app.use(
        rateLimit({ ...alice, scope: 'x', limit: 1, windowSec: 60, store: new MemoryStore() }),
        (_q, res) => res.send('ok'),
      );
      const url = await serve(app);
      await call(url);
      const { status, headers } = await call(url, { headers: { Origin: 'https://shop.example' } });
      expect(status).toBe(429);
      expect(headers['access-control-allow-origin']).toBe(allow['Access-Control-Allow-Origin']);
      expect(headers['access-control-expose-headers']).toBe(allow['Access-Control-Expose-Headers']);
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    });

    test('is not refused its preflight: the CORS middleware answers it before the limiter', async () => {
      const app = express();
      app.use((req, res, next) => {
        res.set(allow);
        if (req.method === 'OPTIONS') res.sendStatus(204);
        else next();
      });
      app.use(rateLimit({ ...alice, scope: 'x', limit: 0, windowSec: 60, store: new MemoryStore() }));
      const headers = { Origin: 'https://shop.example', 'Access-Control-Request-Method': 'PUT' };
      expect((await call(await serve(app), { method: 'OPTIONS', headers })).status).toBe(204);
    });
  });

  test('P59: a second’s limit with an hour’s block', async () => {
    const { get, clock } = await limited(express, {
      ...alice,
      scope: 'x',
      limit: 10,
      windowSec: 1,
      blockSec: 3600,
    });
    expect(await statuses(11, () => get())).toEqual([...times(10, 200), 429]);
    expect((await get()).headers['retry-after']).toBe('3600');
    clock.advance(3_599_999);
    expect((await get()).status).toBe(429);
    clock.advance(1);
    expect((await get()).status).toBe(200);
  });

  describe('P106: good logins', () => {
    test('never add up to a block', async () => {
      const { get } = await limited(express, { ...LOGIN, resetOnSuccess: true });
      expect(await statuses(20, () => get({}, 200))).toEqual(times(20, 200));
    });

    test('forgive what failed before', async () => {
      const { get } = await limited(express, { ...LOGIN, resetOnSuccess: true });
      expect(await statuses(4, () => get({}, 401))).toEqual(times(4, 401));
      expect((await get({}, 200)).headers['x-ratelimit-remaining']).toBe('5');
    });

    test('an operator frees a blocked user by the subject', async () => {
      const { get, limiter } = await limited(express, LOGIN);
      await statuses(5, () => get({}, 401));
      expect((await get()).status).toBe(429);
      await limiter.limiter.reset('alice');
      expect((await get()).status).toBe(200);
    });
  });

  test('P107: after a captcha the handler resets the limit by hand', async () => {
    const { get, limiter } = await limited(
      express,
      {
        ...LOGIN,
        onLimited: (req, _res, next) =>
          req.get('X-Captcha') === 'solved' ? next() : next(new Error('captcha')),
      },
      {
        handler: async (req, res) => {
          if (req.get('X-Captcha') === 'solved') await getRateLimit(req).scope('login').reset();
          res.status(Number(req.get('X-Answer'))).send('ok');
        },
      },
    );
    await statuses(5, () => get({}, 401));
    expect((await get()).status).toBe(500);
    expect((await get({ 'X-Captcha': 'solved' })).status).toBe(200);
    expect(await limiter.limiter.peek('alice')).toMatchObject({ reason: 'ok', remaining: 5 });
  });

  test('P108: five failures, then a look: the block stands, and says until when', async () => {
    const { get, limiter, clock } = await limited(express, LOGIN);
    for (let i = 0; i < 5; i += 1) {
      await get({}, 401);
      clock.advance(10_000);
    }
    expect(await limiter.limiter.peek('alice')).toMatchObject({
      allowed: false,
      reason: 'blocked',
      remaining: 0,
      // It began with the last failure, ten seconds ago.
      retryAfterMs: 890_000,
    });
  });

  test('P134: in shadow mode it counts, blocks and reports what it would have refused, and refuses nothing', async () => {
    const { get, limiter } = await limited(express, { ...LOGIN, mode: 'shadow' });
    const told: string[] = [];
    limiter.limiter.on('shadow-refused', ({ reading }) => told.push(reading.reason));
    expect(await statuses(8, () => get({}, 401))).toEqual(times(8, 401));
    expect(told).toEqual(times(3, 0).map(() => 'blocked'));
    expect((await get({}, 401)).headers['retry-after']).toBeUndefined();
  });
});

test('P118: rateLimit is the default export and a named one', () => {
  expect(defaultExport).toBe(rateLimit);
  expect(library.rateLimit).toBe(rateLimit);
  expect(library.default).toBe(rateLimit);
});
