import type { ErrorRequestHandler } from 'express';
import { byStatus, getRateLimit, MemoryStore, rateLimit } from 'limitkeeper';
import type { RateLimitHandler, RateLimitOptions } from 'limitkeeper';
import { FakeClock } from 'limitkeeper/testing';
import { call, closeServers, EXPRESSES, pause, serve, statuses, times } from '../support/http.js';
import { RemoteStore, STORES } from '../support/stores.js';

afterEach(async () => {
  await pause(5);
  await closeServers();
});

/** 2025-12-01T10:43:00.000Z, a whole minute. */
const START = 1_764_585_780_000;
type OnLimited = NonNullable<RateLimitOptions['onLimited']>;

const problemType = 'https://iana.org/assignments/http-problem-types#quota-exceeded';

const refusing = (options: Partial<RateLimitOptions> = {}): RateLimitHandler =>
  rateLimit({
    scope: 'api.ip',
    limit: 1,
    windowSec: 60,
    algorithm: 'fixed-window',
    keyFn: () => 'alice',
    store: new MemoryStore({ clock: new FakeClock(START) }),
    ...options,
  } as RateLimitOptions);

describe.each(EXPRESSES)('%s', (_name, express) => {
  async function refused(limiter: RateLimitHandler, headers: Record<string, string> = {}, method = 'GET') {
    const reached = jest.fn();
    const app = express();
    app.use(limiter, (_req, res) => {
      reached();
      res.send('ok');
    });
    const url = await serve(app);
    expect((await call(url)).status).toBe(200);
    const reply = await call(url, { headers, method });
    expect(reached).toHaveBeenCalledTimes(1);
    return reply;
  }

  test('is 429 with the stable body, the headers of the decision and Retry-After', async () => {
    const reply = await refused(refusing());
    expect([reply.status, reply.body]).toEqual([429, '{"error":"rate_limit_exceeded"}']);
    expect(reply.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': '31',
      'cache-control': 'no-store',
      vary: 'Accept',
      'retry-after': '60',
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(START / 1000 + 60),
      'ratelimit-policy': '"api.ip";q=1;w=60',
      ratelimit: '"api.ip";r=0;t=60',
    });
    expect(reply.headers['retry-after-ms']).toBeUndefined();
  });

  test('is a problem where Accept prefers it, with the message as detail', async () => {
    const reply = await refused(refusing({ message: 'Please wait a minute.' }), {
      Accept: 'application/problem+json, application/json;q=0.5',
    });
    expect(reply.status).toBe(429);
    expect(reply.headers['content-type']).toBe('application/problem+json');
    expect(JSON.parse(reply.body)).toMatchObject({
      type: problemType,
      status: 429,
      detail: 'Please wait a minute.',
      'violated-policies': ['api.ip'],
    });
  });

  test('a HEAD gets the headers and no body', async () => {
    const reply = await refused(refusing(), {}, 'HEAD');
    expect([reply.status, reply.body, reply.headers['content-length']]).toEqual([429, '', '31']);
  });

  test.each<readonly [string, Partial<RateLimitOptions>]>([
    ['a cost above the capacity', { cost: 2 }],
    ['a limit of 0', { limit: 0 }],
  ])('for ever (%s) has no Retry-After and no reset', async (_what, options) => {
    const app = express();
    app.use(refusing(options));
    const { status, headers } = await call(await serve(app));
    expect([status, headers['retry-after'], headers['x-ratelimit-remaining']]).toEqual([
      429,
      undefined,
      'cost' in options ? '1' : '0',
    ]);
    expect(headers['x-ratelimit-reset']).toBeUndefined();
  });

  test('a permanent block has no Retry-After', async () => {
    const limiter = refusing();
    await limiter.limiter.block('alice', 'forever');
    const app = express();
    app.use(limiter);
    const { status, headers } = await call(await serve(app));
    expect([status, headers['retry-after'], headers['x-ratelimit-reset']]).toEqual([
      429,
      undefined,
      undefined,
    ]);
  });

  test.each<readonly [string, RateLimitOptions['headers'], Record<string, string | undefined>]>([
    [
      'legacy off',
      { legacy: false },
      { 'x-ratelimit-limit': undefined, ratelimit: '"api.ip";r=0;t=60', 'retry-after': '60' },
    ],
    [
      'standard off',
      { standard: false },
      { 'x-ratelimit-limit': '1', ratelimit: undefined, 'ratelimit-policy': undefined, 'retry-after': '60' },
    ],
    ['retryAfterMs', { retryAfterMs: true }, { 'retry-after': '60', 'retry-after-ms': '60000' }],
    [
      'false',
      false,
      {
        'x-ratelimit-limit': undefined,
        ratelimit: undefined,
        'ratelimit-policy': undefined,
        'retry-after': undefined,
      },
    ],
  ])('headers: %s', async (_what, headers, expected) => {
    const reply = await refused(refusing({ headers } as Partial<RateLimitOptions>));
    expect(reply.status).toBe(429);
    expect(reply.headers).toMatchObject(Object.fromEntries(Object.entries(expected).filter(([, v]) => v)));
    for (const [name, value] of Object.entries(expected)) expect(reply.headers[name]).toBe(value);
  });

  test('keeps what was in Vary, and what earlier middlewares set', async () => {
    const app = express();
    app.use((_req, res, next) => {
      res.set({ Vary: 'Origin', 'X-Request-Id': '7' });
      next();
    });
    app.use(refusing({ limit: 0 }));
    const { headers } = await call(await serve(app));
    expect([headers.vary, headers['x-request-id']]).toEqual(['Origin, Accept', '7']);
  });

  describe('onLimited', () => {
    test('answers in place of the 429, with its status and headers set', async () => {
      const onLimited = jest.fn((...[, res]: Parameters<OnLimited>) => {
        res.json({ please: 'wait' });
      });
      const reply = await refused(refusing({ onLimited }));
      expect([reply.status, reply.body]).toEqual([429, '{"please":"wait"}']);
      expect([reply.headers['retry-after'], reply.headers['x-ratelimit-remaining']]).toEqual(['60', '0']);
      expect(onLimited).toHaveBeenCalledTimes(1);
      expect(onLimited.mock.calls[0]?.[3]).toMatchObject({
        allowed: false,
        reason: 'limit',
        scope: 'api.ip',
        limit: 1,
        remaining: 0,
        retryAfterMs: 60_000,
        at: START,
      });
    });

    test('redirects', async () => {
      const reply = await refused(
        refusing({ onLimited: (_req, res) => res.redirect(303, '/reset-password') }),
      );
      expect([reply.status, reply.headers.location, reply.headers['retry-after']]).toEqual([
        303,
        '/reset-password',
        '60',
      ]);
    });

    test('may take its time', async () => {
      const onLimited: RateLimitOptions['onLimited'] = async (_req, res) => {
        await pause(10);
        res.send('slowly');
      };
      expect(await refused(refusing({ onLimited }))).toMatchObject({ status: 429, body: 'slowly' });
    });

    describe.each(STORES)('%s: next() lets the request go on uncounted', (_s, makeStore) => {
      async function goingOn(status: number, options: Partial<RateLimitOptions> = {}) {
        const store = makeStore(new FakeClock(START));
        const limiter = refusing({
          limit: 2,
          blockSec: 900,
          count: 'failures',
          resetOnSuccess: true,
          outcome: byStatus,
          store,
          onLimited: (_req, _res, next) => {
            next();
            next();
          },
          ...options,
        });
        await limiter.limiter.charge('alice', 2);
        const reached = jest.fn();
        const app = express();
        app.use(limiter, (req, res) => {
          reached(getRateLimit(req).decision.allowed);
          res.status(status).send('handled');
        });
        const reply = await call(await serve(app));
        expect([reply.status, reply.body]).toEqual([status, 'handled']);
        expect(reached.mock.calls).toEqual([[false]]);
        const [cell] = await limiter.limiter.inspect('alice');
        return { reply, units: cell?.cell.counters[0]?.state };
      }

      test('a failure is charged, and told', async () => {
        const { reply, units } = await goingOn(401);
        expect(units).toEqual([START, 3]);
        expect([reply.headers['x-ratelimit-remaining'], reply.headers['retry-after']]).toEqual(['0', '900']);
      });

      test('a success forgives', async () => {
        const { reply, units } = await goingOn(200);
        expect(units).toBeUndefined();
        expect([reply.headers['x-ratelimit-remaining'], reply.headers['retry-after']]).toEqual([
          '2',
          undefined,
        ]);
      });

      test('what is neither changes nothing, and no header of the refusal stays', async () => {
        const { reply, units } = await goingOn(302);
        expect(units).toEqual([START, 2]);
        expect(reply.headers['x-ratelimit-remaining']).toBeUndefined();
        expect(reply.headers['retry-after']).toBeUndefined();
      });

      test('a rule that counts everything counts nothing of it', async () => {
        const { units } = await goingOn(200, { count: 'all', resetOnSuccess: false });
        expect(units).toEqual([START, 2]);
      });

      test('a reservation that its handler does not settle costs nothing', async () => {
        const { units } = await goingOn(200, {
          count: 'all',
          reserve: true,
          resetOnSuccess: false,
        });
        expect(units).toEqual([START, 2]);
      });
    });

    test.each(['route', 'router'])('next(%p) lets it go on, too', async word => {
      const limiter = refusing({ limit: 0, onLimited: (_q, _s, next) => next(word as 'route') });
      const app = express();
      const router = express.Router();
      router.get('/', limiter, (_req, res) => res.send('behind'));
      app.use(router);
      app.get('/', (_req, res) => res.send('the other'));
      expect(await call(await serve(app))).toMatchObject({ status: 200, body: 'the other' });
    });

    test.each<readonly [string, OnLimited]>([
      [
        'throws',
        () => {
          throw Object.assign(new Error('boom'), { status: 400 });
        },
      ],
      ['rejects', () => Promise.reject(Object.assign(new Error('boom'), { status: 400 }))],
      ['calls next with an error', (_q, _s, next) => next(Object.assign(new Error('boom'), { status: 400 }))],
      [
        'calls next with an error, and then throws',
        (_q, _s, next) => {
          next(Object.assign(new Error('boom'), { status: 400 }));
          throw new Error('again');
        },
      ],
      [
        'calls next with an error, and then again',
        (_q, _s, next) => {
          next(Object.assign(new Error('boom'), { status: 400 }));
          next();
        },
      ],
    ])(
      'that %s: reaches next once, and charges nothing here or in the limiters before',
      async (_what, onLimited) => {
        for (const [, makeStore] of STORES) {
          const stores = [makeStore(new FakeClock(START)), makeStore(new FakeClock(START))] as const;
          const before = refusing({
            scope: 'before',
            limit: 5,
            count: 'failures',
            outcome: byStatus,
            store: stores[0],
          });
          const limiter = refusing({
            limit: 0,
            count: 'failures',
            outcome: byStatus,
            store: stores[1],
            onLimited,
          });
          const errors: unknown[] = [];
          const reached = jest.fn();
          const app = express();
          app.use(before, limiter, () => reached());
          app.use(((error, _req, res, _next) => {
            errors.push(error.message);
            res.status(error.status).send(String(res.statusCode));
          }) as ErrorRequestHandler);
          const reply = await call(await serve(app));
          expect([reply.status, errors, reached.mock.calls.length]).toEqual([400, ['boom'], 0]);
          await pause(15);
          expect((await before.limiter.peek('alice')).remaining).toBe(5);
          expect(await limiter.limiter.inspect('alice')).toEqual([]);
        }
      },
    );

    test('an error after it has answered reaches next, and the answer stands', async () => {
      const errors: unknown[] = [];
      const app = express();
      app.use(
        refusing({
          limit: 0,
          onLimited: (_req, res) => {
            res.send('answered');
            throw new Error('boom');
          },
        }),
      );
      app.use(((error, _req, _res, _next) => {
        errors.push(error.message);
      }) as ErrorRequestHandler);
      const reply = await call(await serve(app));
      expect([reply.status, reply.body, errors]).toEqual([429, 'answered', ['boom']]);
    });

    test('is not asked where the store has failed: that is a 503', async () => {
      const store = new RemoteStore();
      store.behaviour = 'reject';
      const onLimited = jest.fn();
      const app = express();
      app.use(refusing({ store, failMode: 'closed', onLimited }));
      expect((await call(await serve(app))).status).toBe(503);
      expect(onLimited).not.toHaveBeenCalled();
    });
  });

  test('a limiter that refuses releases what those before it hold, and their rules ignore the request', async () => {
    for (const [, makeStore] of STORES) {
      const store = makeStore();
      const outcome = jest.fn(byStatus);
      const app = express();
      app.use(
        rateLimit({
          rules: [
            { scope: 'held', limit: 10, windowSec: 60, keyFn: () => 'alice', cost: 4, reserve: true },
            { scope: 'failures', limit: 10, windowSec: 60, keyFn: () => 'alice', count: 'failures' },
            { scope: 'all', limit: 10, windowSec: 60, keyFn: () => 'alice' },
          ],
          outcome,
          store,
        }),
      );
      app.use(refusing({ limit: 0 }));
      const reply = await call(await serve(app));
      expect(reply.status).toBe(429);
      expect(outcome).not.toHaveBeenCalled();
      // The rule that counts all has counted what its limiter let pass.
      expect(reply.headers['ratelimit']).toMatch(
        /"held";r=10, "failures";r=10, "all";r=9;t=\d+, "api.ip";r=0/,
      );
    }
  });

  test('is told once and for all: nothing behind it runs, however often', async () => {
    const reached = jest.fn();
    const app = express();
    app.use(refusing({ limit: 2 }), (_req, res) => {
      reached();
      res.send('ok');
    });
    const url = await serve(app);
    expect(await statuses(6, () => call(url))).toEqual([...times(2, 200), ...times(4, 429)]);
    expect(reached).toHaveBeenCalledTimes(2);
  });
});
