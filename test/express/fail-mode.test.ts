import { byStatus, MemoryStore, rateLimit } from 'limitkeeper';
import type { RateLimitHandler, RateLimitOptions } from 'limitkeeper';
import { call, closeServers, EXPRESSES, pause, serve, statuses, times, together } from '../support/http.js';
import { RemoteStore } from '../support/stores.js';

afterEach(async () => {
  await pause(5);
  await closeServers();
});

const WAYS_TO_FAIL = ['hang', 'reject', 'throw'] as const;

describe.each(EXPRESSES)('%s', (_name, express) => {
  let store: RemoteStore;
  let limiter: RateLimitHandler;
  let reached: jest.Mock;
  let url: string;

  async function start(options: Partial<RateLimitOptions> = {}): Promise<void> {
    store = new RemoteStore(new MemoryStore(), 1);
    limiter = rateLimit({
      scope: 'api.ip',
      limit: 2,
      windowSec: 60,
      store,
      storeTimeoutMs: 40,
      ...options,
    } as RateLimitOptions);
    reached = jest.fn();
    const app = express();
    app.use(limiter, (req, res) => {
      reached();
      res.status(Number(req.get('X-Answer') ?? 200)).send('ok');
    });
    url = await serve(app);
  }

  describe.each(WAYS_TO_FAIL)('a store that comes to %s', behaviour => {
    test('open (the default): the request passes, and no header of ours says anything', async () => {
      await start();
      store.behaviour = behaviour;
      const reply = await call(url);
      expect([reply.status, reply.body]).toEqual([200, 'ok']);
      expect(Object.keys(reply.headers).filter(name => /ratelimit|retry/.test(name))).toEqual([]);
    });

    test('closed: 503 with Retry-After, and nothing behind it runs', async () => {
      await start({ failMode: 'closed', message: 'Back soon.' });
      store.behaviour = behaviour;
      const reply = await call(url);
      expect([reply.status, reply.body]).toEqual([503, '{"error":"rate_limiter_unavailable"}']);
      expect(reply.headers).toMatchObject({
        'content-type': 'application/json',
        'cache-control': 'no-store',
        'retry-after': '1',
      });
      expect(Object.keys(reply.headers).filter(name => name.includes('ratelimit'))).toEqual([]);
      const problem = await call(url, { headers: { Accept: 'application/problem+json' } });
      expect([problem.status, problem.headers['content-type']]).toEqual([503, 'application/problem+json']);
      expect(JSON.parse(problem.body)).toMatchObject({
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        status: 503,
        detail: 'Back soon.',
      });
      expect(reached).not.toHaveBeenCalled();
    });

    test('local: a memory store of this process decides, from nothing', async () => {
      await start({ failMode: 'local' });
      expect(await statuses(2, () => call(url))).toEqual([200, 200]);
      store.behaviour = behaviour;
      expect(await statuses(3, () => call(url))).toEqual([200, 200, 429]);
      store.behaviour = 'answer';
    });

    test('local: failures are counted there, too, and forgiven there', async () => {
      await start({
        failMode: 'local',
        count: 'failures',
        resetOnSuccess: true,
        keyFn: () => 'alice',
        outcome: byStatus,
      });
      store.behaviour = behaviour;
      const answer = (status: number) => () => call(url, { headers: { 'X-Answer': String(status) } });
      expect((await answer(401)()).headers['x-ratelimit-remaining']).toBe('1');
      expect((await answer(200)()).headers['x-ratelimit-remaining']).toBe('2');
      expect(await statuses(3, answer(401))).toEqual([401, 401, 429]);
    });
  });

  test('local: what it has decided is settled there, also when the store is back by then', async () => {
    await start({
      failMode: 'local',
      count: 'failures',
      keyFn: () => 'alice',
      outcome: (_req, res) => {
        store.behaviour = 'answer';
        return byStatus(_req, res);
      },
    });
    store.behaviour = 'reject';
    expect((await call(url, { headers: { 'X-Answer': '401' } })).headers['x-ratelimit-remaining']).toBe('1');
    expect(store.asked).toEqual(['reserve']);
    expect((await limiter.limiter.peek('alice')).remaining).toBe(2);
    store.behaviour = 'reject';
    expect((await limiter.limiter.peek('alice')).remaining).toBe(1);
  });

  test('a dead store costs a few deadlines, not one a request, and comes back by itself', async () => {
    await start();
    const events: string[] = [];
    for (const name of ['degraded', 'recovered'] as const) limiter.limiter.on(name, () => events.push(name));
    store.behaviour = 'hang';
    expect(await statuses(5, () => call(url))).toEqual(times(5, 200));
    // Five failures in a row: it is left alone for a second.
    const before = store.asked.length;
    await together(20, () => call(url));
    expect(store.asked.length).toBe(before);
    store.behaviour = 'answer';
    await pause(1050);
    expect((await call(url)).headers['x-ratelimit-remaining']).toBe('1');
    expect(events).toEqual(['degraded', 'recovered']);
  });

  test('a refusal is never taken for a failure: a limit of 0 refuses whatever the fail mode', async () => {
    for (const failMode of ['open', 'closed', 'local'] as const) {
      await start({ limit: 0, failMode });
      expect((await call(url)).status).toBe(429);
    }
  });

  test('an answer that comes too late is thrown away: the request was let pass, and one answer leaves', async () => {
    await start();
    // Far behind the deadline, also where a crowded machine makes the guard grant it once more.
    const slow = new RemoteStore(new MemoryStore(), 1000);
    store.decide = slow.decide.bind(slow);
    const reply = await call(url);
    expect([reply.status, reply.headers['x-ratelimit-limit']]).toEqual([200, undefined]);
    await pause(1100);
    expect(reached).toHaveBeenCalledTimes(1);
  });

  test('each limiter fails in its own way', async () => {
    await start({ failMode: 'open' });
    const app = express();
    const dead = new RemoteStore();
    dead.behaviour = 'reject';
    app.use(rateLimit({ scope: 'open', limit: 5, windowSec: 60, store: dead }));
    app.use(
      rateLimit({ scope: 'closed', limit: 5, windowSec: 60, store: new MemoryStore(), failMode: 'closed' }),
      (_req, res) => res.send('ok'),
    );
    const { status, headers } = await call(await serve(app));
    expect([status, headers['ratelimit-policy']]).toEqual([200, '"closed";q=5;w=60']);
  });

  test('where a limiter fails closed, those before it count nothing of the request', async () => {
    const first = rateLimit({
      scope: 'first',
      limit: 5,
      windowSec: 60,
      keyFn: () => 'alice',
      count: 'failures',
      outcome: byStatus,
      store: new MemoryStore(),
    });
    const dead = new RemoteStore();
    dead.behaviour = 'reject';
    const app = express();
    app.use(first, rateLimit({ scope: 'closed', limit: 5, windowSec: 60, store: dead, failMode: 'closed' }));
    expect((await call(await serve(app))).status).toBe(503);
    expect((await first.limiter.peek('alice')).remaining).toBe(5);
  });
});
