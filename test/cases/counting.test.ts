// Reports about what is counted, and when. The ids name the rows of a list of public reports.
import express5 from 'express';
import { byStatus, getRateLimit, MemoryStore, rateLimit } from 'limitkeeper';
import type { Plan, RateLimitHandler } from 'limitkeeper';
import { FakeClock } from 'limitkeeper/testing';
import {
  call,
  closeServers,
  EXPRESSES,
  Gate,
  serve,
  statuses,
  tally,
  times,
  together,
  until,
} from '../support/http.js';
import { limited, START } from '../support/limited.js';
import { RemoteStore } from '../support/stores.js';
import { forgetWarnings, watchWarnings } from '../support/warnings.js';

afterEach(async () => {
  jest.restoreAllMocks();
  await closeServers();
});

const alice = { keyFn: () => 'alice', algorithm: 'fixed-window' } as const;

describe.each(EXPRESSES)('%s', (_name, express) => {
  test.each([
    ['with every family of headers', {}],
    ['without the draft ones', { headers: { standard: false } }],
    ['without any', { headers: false as const }],
  ])('P06: a key that is undefined is the same error %s', async (_what, more) => {
    const { get } = await limited(express, {
      scope: 'x',
      limit: 5,
      windowSec: 60,
      keyFn: (() => undefined) as never,
      ...more,
    });
    const reply = await get();
    expect([reply.status, reply.body.includes('a key must be a non-empty string')]).toEqual([500, true]);
  });

  test('P13: two rules for one user in one store count apart, each in its own window', async () => {
    const { get, limiter, clock } = await limited(express, {
      rules: [
        { ...alice, scope: 'export', limit: 100, windowSec: 30 * 86_400 },
        { ...alice, scope: 'search', limit: 2, windowSec: 3600 },
      ],
    });
    expect(await statuses(3, () => get())).toEqual([200, 200, 429]);
    clock.advance(3_600_000);
    expect((await get()).status).toBe(200);
    const { readings } = await limiter.limiter.peek('alice');
    expect(readings.map(({ remaining, resetAfterMs }) => [remaining, resetAfterMs])).toEqual([
      [97, 30 * 86_400_000 - 3_600_000],
      [1, 3_600_000],
    ]);
  });

  test.each([[{ id: 1 }], [undefined], [null], [''], [NaN], [[]]])(
    'P19: the key %p is refused, and merges no users',
    async key => {
      const { get, store } = await limited(express, {
        scope: 'x',
        limit: 5,
        windowSec: 60,
        keyFn: (() => key) as never,
      });
      expect((await get()).status).toBe(500);
      expect(store.size).toBe(0);
    },
  );

  describe('P20: many slow good requests against a limit on failures', () => {
    async function fifty(strict: boolean) {
      const gate = new Gate();
      let refused = 0;
      const app = express();
      app.use((_req, res, next) => {
        res.on('finish', () => (refused += res.statusCode === 429 ? 1 : 0));
        next();
      });
      let reached = 0;
      const limiter = rateLimit({
        ...alice,
        scope: 'login',
        limit: 5,
        windowSec: 900,
        blockSec: 900,
        count: 'failures',
        strict,
        outcome: byStatus,
        store: new MemoryStore(),
      });
      app.use(limiter, async (req, res) => {
        reached += 1;
        await gate.passed;
        res.status(Number(req.get('X-Answer') ?? 200)).send('ok');
      });
      const url = await serve(app);
      const replies = together(50, () => call(url));
      await until(() => reached + refused === 50);
      gate.open();
      return { replies: await replies, limiter, url };
    }

    test('strict: five pass, 45 are asked to come back in a second, no block, and the next one passes', async () => {
      const { replies, limiter, url } = await fifty(true);
      expect(tally(replies)).toEqual({ 200: 5, 429: 45 });
      const refusals = replies.filter(({ status }) => status === 429);
      expect(refusals.map(({ headers }) => headers['retry-after'])).toEqual(times(45, 1).map(String));
      expect(await limiter.limiter.peek('alice')).toMatchObject({ reason: 'ok', remaining: 5 });
      expect((await call(url)).status).toBe(200);
    });

    test('optimistic: all 50 pass, and failures are charged when they are known', async () => {
      const { replies, limiter, url } = await fifty(false);
      expect(tally(replies)).toEqual({ 200: 50 });
      await call(url, { headers: { 'X-Answer': '401' } });
      expect((await limiter.limiter.peek('alice')).remaining).toBe(4);
    });
  });

  test('P23: giving back when the window is over makes no counter, and never fewer than none', async () => {
    const { limiter, clock, store, get } = await limited(
      express,
      { ...alice, scope: 'x', limit: 5, windowSec: 60 },
      {
        handler: async (req, res) => {
          clock.advance(60_000);
          const reading = await getRateLimit(req).scope('x').refund();
          res.json(reading?.remaining);
        },
      },
    );
    expect((await get()).body).toBe('5');
    clock.advance(1);
    expect(await limiter.limiter.inspect('alice')).toEqual([]);
    expect((await limiter.limiter.peek('alice')).remaining).toBe(5);
    expect(store.size).toBeLessThanOrEqual(1);
  });

  test('P26: one look at the finished answer decides: a 422 does not count', async () => {
    const { get } = await limited(express, {
      ...alice,
      scope: 'x',
      limit: 5,
      windowSec: 60,
      count: 'failures',
      outcome: (_req, res) => (res.statusCode >= 400 && res.statusCode !== 422 ? 'failure' : 'ignore'),
    });
    expect((await get({}, 422)).headers['x-ratelimit-remaining']).toBe('5');
    expect((await get({}, 400)).headers['x-ratelimit-remaining']).toBe('4');
  });

  test('P26: a skip that answers a listener skips nothing', async () => {
    const { get } = await limited(express, {
      scope: 'x',
      limit: 1,
      windowSec: 60,
      skip: ((_req: unknown, res: { on: (name: string, f: () => void) => unknown }) =>
        res.on('finish', () => {})) as never,
    });
    expect(await statuses(2, () => get())).toEqual([200, 429]);
  });

  test('P28: of 1,000 fast requests on a store that answers later, five pass', async () => {
    const app = express();
    const store = new RemoteStore(new MemoryStore(), () => new Promise(setImmediate));
    const options = { scope: 'x', limit: 5, windowSec: 3600, keyFn: () => 'alice', storeTimeoutMs: 10_000 };
    app.use(rateLimit({ ...options, store }), (_req, res) => res.send('ok'));
    const url = await serve(app);
    const totals: Record<number, number> = {};
    for (let i = 0; i < 10; i += 1) {
      for (const [status, n] of Object.entries(tally(await together(100, () => call(url))))) {
        totals[Number(status)] = (totals[Number(status)] ?? 0) + n;
      }
    }
    expect(totals).toEqual({ 200: 5, 429: 995 });
  }, 30_000);

  test('P29, P30: a minute is charged only for what the second let pass', async () => {
    const { get, limiter } = await limited(express, {
      rules: [
        { ...alice, scope: 'second', limit: 10, windowSec: 1 },
        { ...alice, scope: 'minute', limit: 50, windowSec: 60 },
      ],
    });
    const seen = await statuses(60, () => get());
    expect(seen).toEqual([...times(10, 200), ...times(50, 429)]);
    expect((await limiter.limiter.peek('alice')).readings.map(({ remaining }) => remaining)).toEqual([0, 40]);
  });

  test('P32: HEAD on a GET route counts once', async () => {
    const { limiter, url } = await limited(express, { ...alice, scope: 'x', limit: 5, windowSec: 60 });
    expect((await call(url, { method: 'HEAD' })).status).toBe(200);
    expect((await limiter.limiter.peek('alice')).remaining).toBe(4);
  });

  test('P33: created anew for every request it limits all the same, because scope and store decide, and warns', async () => {
    forgetWarnings();
    const warnings = watchWarnings();
    const made: RateLimitHandler[] = [];
    const app = express();
    app.use((req, res, next) => {
      const limiter = rateLimit({ ...alice, scope: `P33 ${_name}`, limit: 2, windowSec: 60 });
      made.push(limiter);
      limiter(req, res, next);
    });
    app.use((_req, res) => res.send('ok'));
    const url = await serve(app);
    expect(await statuses(3, () => call(url))).toEqual([200, 200, 429]);
    expect(warnings).toEqual(['LIMITKEEPER_CREATED_IN_HANDLER']);
    await made[0]?.limiter.resetAll();
  });

  describe('P35: nothing, everything, and not a number', () => {
    test('a limit of 0 refuses all', async () => {
      const { get } = await limited(express, { scope: 'x', limit: 0, windowSec: 60 });
      expect((await get()).status).toBe(429);
    });

    test("no limit at all is mode: 'off', or a plan that is unlimited", async () => {
      const off = await limited(express, { scope: 'x', limit: 0, windowSec: 60, mode: 'off' });
      const plan = await limited(express, { scope: 'x', plan: () => 'unlimited' as const });
      expect(await statuses(20, () => off.get())).toEqual(times(20, 200));
      expect(await statuses(20, () => plan.get())).toEqual(times(20, 200));
    });

    test('NaN and Infinity are refused when the limiter is made', () => {
      for (const limit of [Number(undefined), Number('abc'), Infinity]) {
        expect(() => rateLimit({ scope: 'x', limit, windowSec: 60 })).toThrow(
          expect.objectContaining({ code: 'ERR_LIMITKEEPER_OPTION_RANGE', option: 'limit' }),
        );
      }
    });
  });

  test('P36: a plan gives limit and window together, and may change from one request to the next', async () => {
    const plans: Record<string, Plan> = {
      free: { limit: 5, windowSec: 60 },
      pro: { limit: 20, windowSec: 3600 },
    };
    let tariff = 'free';
    const { get } = await limited(express, { ...alice, scope: 'x', plan: () => plans[tariff]! });
    expect(await statuses(6, () => get())).toEqual([...times(5, 200), 429]);
    tariff = 'pro';
    expect(await statuses(21, () => get())).toEqual([...times(20, 200), 429]);
    expect((await get()).headers).toMatchObject({ 'retry-after': '3600', 'x-ratelimit-limit': '20' });
  });

  test('P37: the window belongs to the counter: a plan by path does not stick to the first path', async () => {
    const { url, clock } = await limited(express, {
      ...alice,
      scope: 'x',
      plan: req => (req.path === '/slow' ? { limit: 1, windowSec: 300 } : { limit: 1, windowSec: 10 }),
    });
    expect(await statuses(2, () => call(`${url}/slow`))).toEqual([200, 429]);
    expect(await statuses(2, () => call(`${url}/fast`))).toEqual([200, 429]);
    clock.advance(10_000);
    expect((await call(`${url}/fast`)).status).toBe(200);
    expect((await call(`${url}/slow`)).headers['retry-after']).toBe('290');
  });

  test('P39: a request of cost 4 with 3 left is refused whole, and charged nothing', async () => {
    const { get, limiter } = await limited(express, {
      ...alice,
      scope: 'x',
      limit: 10,
      windowSec: 60,
      cost: req => Number(req.get('X-Items')),
    });
    const items = (n: number) => get({ 'X-Items': String(n) });
    expect((await items(7)).status).toBe(200);
    expect((await items(4)).status).toBe(429);
    expect((await limiter.limiter.peek('alice')).remaining).toBe(3);
    expect((await items(3)).status).toBe(200);
  });

  test('P42: looking at what is left spends nothing and writes nothing', async () => {
    const { get, limiter, store } = await limited(express, {
      ...alice,
      scope: 'x',
      limit: 10,
      windowSec: 60,
    });
    for (let i = 0; i < 20; i += 1) {
      expect(await limiter.limiter.peek('alice')).toMatchObject({ allowed: true, limit: 10, remaining: 10 });
    }
    expect(store.size).toBe(0);
    await statuses(7, () => get());
    const peeked = await limiter.limiter.peek('alice', { cost: 0 });
    expect([peeked.limit, peeked.remaining]).toEqual([10, 3]);
    expect((await limiter.limiter.peek('alice')).remaining).toBe(3);
  });

  test.each([
    ['limit', { limit: -1, windowSec: 60 }],
    ['windowSec', { limit: 1, windowSec: -60 }],
    ['blockSec', { limit: 1, windowSec: 60, blockSec: -1 }],
    ['cost', { limit: 1, windowSec: 60, cost: -1 }],
    ['holdSec', { limit: 1, windowSec: 60, holdSec: -1 }],
  ])('P43: a negative %s is refused', (option, numbers) => {
    expect(() => rateLimit({ scope: 'x', ...numbers })).toThrow(expect.objectContaining({ option }));
  });

  test('P44: a window of half a second is over after half a second', async () => {
    const { get, clock } = await limited(express, { ...alice, scope: 'x', limit: 1, windowSec: 0.5 });
    expect(await statuses(2, () => get())).toEqual([200, 429]);
    clock.advance(499);
    expect((await get()).status).toBe(429);
    clock.advance(1);
    expect((await get()).status).toBe(200);
  });
});

test('P99: a store of one process in one of several is warned of when the limiter is made', () => {
  forgetWarnings();
  const warnings = watchWarnings();
  const options = { ...alice, scope: 'x', limit: 10, windowSec: 60 };
  process.env['NODE_APP_INSTANCE'] = '1';
  try {
    rateLimit({ ...options, store: new RemoteStore() });
    expect(warnings).toEqual([]);
    rateLimit({ ...options, store: new MemoryStore() });
    rateLimit(options);
    expect(warnings).toEqual(['LIMITKEEPER_MEMORY_STORE_PER_PROCESS']);
  } finally {
    delete process.env['NODE_APP_INSTANCE'];
  }
});

test('P99: a store of one process is told from a shared one, and the limit holds across limiters of one store', async () => {
  const store = new MemoryStore({ clock: new FakeClock(START) });
  expect(store.perProcess).toBe(true);
  const workers = Array.from({ length: 4 }, () =>
    rateLimit({ ...alice, scope: 'x', limit: 10, windowSec: 60, store }),
  );
  const urls = await Promise.all(
    workers.map(limiter => {
      const app = express5();
      app.use(limiter, (_req, res) => res.send('ok'));
      return serve(app);
    }),
  );
  const replies = await together(40, i => call(urls[i % 4]!));
  expect(tally(replies)).toEqual({ 200: 10, 429: 30 });
});
