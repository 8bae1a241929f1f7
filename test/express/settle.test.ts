import { once } from 'node:events';
import http, { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import type { RequestHandler, Response } from 'express';
import { getRateLimit, MemoryStore, rateLimit } from 'limitkeeper';
import type { RateLimitHandler } from 'limitkeeper';
import { FakeClock } from 'limitkeeper/testing';
import { call, closeServers, cutShort, EXPRESSES, pause, serve, until } from '../support/http.js';
import { failures, START } from '../support/limited.js';
import { RemoteStore } from '../support/stores.js';

afterEach(closeServers);

const left = async (limiter: RateLimitHandler): Promise<number | null> =>
  (await limiter.limiter.peek('alice')).remaining;

/** The units charged and those still on hold: both leave less, but only one of them was settled. */
async function units(limiter: RateLimitHandler): Promise<{ charged: number; held: boolean }> {
  const [stored] = await limiter.limiter.inspect('alice');
  const counter = stored?.cell.counters[0];
  return { charged: counter?.state?.[1] ?? 0, held: (counter?.holds.length ?? 0) > 0 };
}

/** Where the process would have died later, Jest fails the test that runs: it must still run then. */
afterEach(() => pause(10));

describe.each(EXPRESSES)('%s', (_name, express) => {
  describe('a handler that answers twice while the first answer is held', () => {
    const SECONDS: readonly (readonly [string, (res: Response, next: (error?: unknown) => void) => void])[] =
      [
        ['sends again', res => void res.status(500).set('X-Second', 'yes').send('second')],
        ['answers JSON', res => void res.status(500).json({ second: true })],
        ['redirects', res => res.redirect('/second')],
        ['writes the head itself', res => void res.writeHead(500, { 'X-Second': 'yes' }).end('second')],
        ['writes and ends', res => void (res.write('second'), res.end('second'))],
        ['sends the head', res => (res.setHeader('X-Second', 'yes'), res.flushHeaders())],
        ['removes a header', res => res.removeHeader('X-First')],
        ['adds to a header', res => void res.appendHeader('X-First', 'and second')],
        ['passes an error on', (_res, next) => next(new Error('second'))],
        ['passes an error on later', (_res, next) => void setTimeout(next, 2, new Error('second'))],
        [
          'passes an error on when the first is out',
          (_res, next) => void setTimeout(next, 60, new Error('second')),
        ],
      ];

    test.each(SECONDS)('%s: the first stands, untouched', async (_what, second) => {
      const store = new RemoteStore(new MemoryStore(), 20);
      const limiter = failures({ store });
      const app = express();
      app.set('env', 'test');
      app.use(limiter, (_req, res, next) => {
        res.status(401).set('X-First', 'yes').send('first');
        second(res, next);
      });
      const reply = await call(await serve(app), { method: 'POST', body: { password: 'wrong' } });
      expect([reply.status, reply.statusText, reply.body]).toEqual([401, 'Unauthorized', 'first']);
      expect([reply.headers['x-first'], reply.headers['x-second'], reply.headers.location]).toEqual([
        'yes',
        undefined,
        undefined,
      ]);
      expect(reply.headers['content-length']).toBe('5');
      expect(reply.headers['x-ratelimit-remaining']).toBe('4');
      await pause(60);
      expect(store.asked).toEqual(['reserve', 'settle']);
    });

    test("Express's own error page, written when the request is read at last, harms nobody", async () => {
      const errorPage = jest.fn();
      const app = express();
      app.set('env', 'test');
      app.use(failures({ store: new RemoteStore(new MemoryStore(), 20) }), (req, res, next) => {
        res.status(200).send('first');
        req.on('end', errorPage);
        next(new Error('second'));
      });
      const request = http.request(await serve(app), { method: 'POST', headers: { 'Content-Length': 10 } });
      request.write('hello');
      const [response] = (await once(request, 'response')) as [http.IncomingMessage];
      expect([response.statusCode, await text(response)]).toEqual([200, 'first']);
      // It looked at headersSent while the answer was held, and has waited for these bytes since.
      expect(errorPage).not.toHaveBeenCalled();
      request.end('world');
      await until(() => errorPage.mock.calls.length === 1);
      await pause(10);
    });

    test('the callbacks of what is dropped are called, so that nobody waits for them', async () => {
      const called = { end: jest.fn(), write: jest.fn() };
      const app = express();
      app.use(failures({ store: new RemoteStore(new MemoryStore(), 20) }), (_req, res) => {
        res.send('first');
        res.write('second', called.write);
        res.end('second', called.end);
        expect(called.end).not.toHaveBeenCalled();
      });
      expect((await call(await serve(app))).body).toBe('first');
      await until(() => called.end.mock.calls.length + called.write.mock.calls.length === 2);
    });

    test('two limiters that both hold: the first answer stands, and each settles once', async () => {
      const stores = [new RemoteStore(), new RemoteStore()];
      const app = express();
      app.set('env', 'test');
      for (const store of stores) app.use(failures({ store }));
      app.use((_req, res, next) => {
        res.status(401).send('first');
        setTimeout(() => res.status(500).send('second'), 7);
        next(new Error('third'));
      });
      const reply = await call(await serve(app));
      expect([reply.status, reply.body, reply.headers['x-ratelimit-remaining']]).toEqual([401, 'first', '4']);
      await pause(20);
      expect(stores.map(({ asked }) => asked)).toEqual([
        ['reserve', 'settle'],
        ['reserve', 'settle'],
      ]);
    });
  });

  describe('a client that goes away', () => {
    test('before the decision: a failure, settled once, and the handler need not answer', async () => {
      let decide: (() => void) | undefined;
      const store = new RemoteStore(
        new MemoryStore(),
        () => new Promise<void>(done => (decide === undefined ? (decide = done) : done())),
      );
      const limiter = failures({ store });
      const reached = jest.fn();
      const app = express();
      app.use(limiter, () => reached());
      const { abort, gone } = cutShort(await serve(app));
      await until(() => decide !== undefined);
      abort();
      await gone;
      await pause(30);
      decide?.();
      await until(() => reached.mock.calls.length === 1);
      await pause(10);
      expect(store.asked).toEqual(['reserve', 'settle']);
      expect(await left(limiter)).toBe(4);
    });

    test.each([
      ['a store that answers at once', () => new MemoryStore()],
      ['a store that answers later', () => new RemoteStore()],
    ])('while the handler works, with %s: a failure, settled once', async (_s, makeStore) => {
      const limiter = failures({ store: makeStore() });
      let answer: (() => void) | undefined;
      const app = express();
      app.use(limiter, (_req, res) => {
        answer = () => res.status(200).send('too late');
      });
      const { abort, gone } = cutShort(await serve(app));
      await until(() => answer !== undefined);
      abort();
      await gone;
      await pause(30);
      expect(await units(limiter)).toEqual({ charged: 1, held: false });
      // The handler does not know, and answers: it is a failure already, and stays one.
      answer?.();
      await pause(20);
      expect(await units(limiter)).toEqual({ charged: 1, held: false });
    });

    test('in the middle of a stream: its status is known and holds, settled once', async () => {
      const store = new RemoteStore();
      const limiter = failures({ store });
      let ended = false;
      const app = express();
      app.use(limiter, (_req, res) => {
        const timer = setInterval(() => res.write('x'.repeat(1000)), 2);
        res.on('close', () => {
          clearInterval(timer);
          res.end();
          ended = true;
        });
      });
      const { abort } = cutShort(await serve(app));
      await until(() => store.asked.length === 1);
      await pause(20);
      abort();
      await until(() => ended);
      await pause(20);
      expect(store.asked).toEqual(['reserve', 'settle']);
      expect(await left(limiter)).toBe(5);
    });

    test('while the end is held: what the handler answered counts, once', async () => {
      let settle: (() => void) | undefined;
      let calls = 0;
      const store = new RemoteStore(new MemoryStore(), () => {
        calls += 1;
        return calls === 2 ? new Promise<void>(done => (settle = done)) : Promise.resolve();
      });
      const limiter = failures({ store, storeTimeoutMs: 5000 });
      const app = express();
      app.use(limiter, (_req, res) => res.status(200).send('welcome'));
      const { abort, gone } = cutShort(await serve(app));
      await until(() => settle !== undefined);
      abort();
      await gone;
      await pause(30);
      settle?.();
      await pause(10);
      expect(store.asked).toEqual(['reserve', 'settle']);
      expect(await left(limiter)).toBe(5);
    });

    test('after the answer: nothing more happens', async () => {
      const store = new RemoteStore();
      const limiter = failures({ store });
      const app = express();
      app.use(limiter, (_req, res) => res.status(200).send('welcome'));
      await call(await serve(app));
      await closeServers();
      await pause(20);
      expect(store.asked).toEqual(['reserve', 'settle']);
      expect(await left(limiter)).toBe(5);
    });

    test('a request that was refused: nothing to settle', async () => {
      const store = new RemoteStore();
      const limiter = failures({ store, limit: 0 });
      const app = express();
      app.use(limiter);
      const { abort, gone } = cutShort(await serve(app));
      await until(() => store.asked.length === 1);
      abort();
      await gone;
      await pause(20);
      expect(store.asked).toEqual(['reserve']);
    });
  });

  test('a handler that never answers holds its unit until the hold lapses, between one and two holds later', async () => {
    const clock = new FakeClock(Math.ceil(START / 60_000) * 60_000);
    const limiter = failures({ store: new MemoryStore({ clock }), limit: 1, holdSec: 60 });
    const reached = jest.fn();
    const app = express();
    app.use(limiter, () => reached());
    const url = await serve(app);
    cutShort(url);
    await until(() => reached.mock.calls.length === 1);
    clock.advance(119_999);
    const reply = await call(url);
    expect([reply.status, reply.headers['retry-after']]).toEqual([429, '1']);
    clock.advance(1);
    cutShort(url);
    await until(() => reached.mock.calls.length === 2);
  });

  test.each(['hang', 'reject', 'throw'] as const)(
    'a store that comes to %s before the outcome is known delays the answer by the deadline at most',
    async behaviour => {
      const store = new RemoteStore(new MemoryStore(), 1);
      const limiter = failures({ store, storeTimeoutMs: 40 });
      const errors: unknown[] = [];
      limiter.limiter.on('store-error', ({ dropped, error }) => errors.push([dropped, error.code]));
      const app = express();
      app.use(limiter, (_req, res) => {
        store.behaviour = behaviour;
        res.status(401).send('no');
      });
      const reply = await call(await serve(app));
      expect([reply.status, reply.body, reply.headers['x-ratelimit-remaining']]).toEqual([401, 'no', '4']);
      const code = behaviour === 'hang' ? 'ERR_LIMITKEEPER_STORE_TIMEOUT' : 'ERR_LIMITKEEPER_STORE';
      expect(errors).toEqual([[true, code]]);
    },
  );

  test('a store that answers nonsense when the outcome is known ends neither the answer nor the process', async () => {
    const store = new RemoteStore(new MemoryStore(), 1);
    const decide = store.decide.bind(store);
    const limiter = failures({ store });
    const app = express();
    app.use(limiter, (_req, res) => {
      store.decide = () => Promise.resolve(undefined as never);
      res.status(401).send('no');
    });
    const url = await serve(app);
    expect((await call(url)).body).toBe('no');
    store.decide = decide;
    const { abort, gone } = cutShort(url);
    await pause(5);
    abort();
    await gone;
  });

  test('close() of the limiter waits for what is being settled', async () => {
    const store = new RemoteStore(new MemoryStore(), 40);
    const limiter = failures({ store });
    let ended = false;
    const app = express();
    app.use(limiter, (_req, res) => {
      ended = true;
      res.status(401).send('no');
    });
    const { abort } = cutShort(await serve(app));
    await until(() => ended);
    await limiter.limiter.close();
    expect((await failures({ store: store.inner }).limiter.peek('alice')).remaining).toBe(4);
    abort();
  });

  test('a response without loose ends is left as it is', async () => {
    const ends: boolean[] = [];
    const app = express();
    app.use((_req, res, next) => {
      const before = res.end;
      next();
      ends.push(res.end === before);
    });
    app.use(rateLimit({ scope: 'all', limit: 5, windowSec: 60, store: new MemoryStore() }), (_req, res) =>
      res.send('ok'),
    );
    await call(await serve(app));
    expect(ends).toEqual([true]);
  });

  test('an end of somebody else that throws cuts the connection and not the process', async () => {
    const broken: RequestHandler = (_req, res, next) => {
      res.end = () => {
        throw new Error('broken middleware');
      };
      next();
    };
    const app = express();
    app.use(broken, failures({ store: new RemoteStore() }), (_req, res) => res.send('ok'));
    await expect(call(await serve(app))).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  test('what the handler settles is told in the headers of its answer', async () => {
    const limiter = failures({
      count: 'all',
      reserve: true,
      cost: 3,
      store: new RemoteStore(),
    });
    const app = express();
    app.use(limiter, async (req, res) => {
      await getRateLimit(req).settle(1);
      res.send('ok');
    });
    expect((await call(await serve(app))).headers['x-ratelimit-remaining']).toBe('4');
  });
});

test('without Express, on a bare server, it works as well', async () => {
  const limiter = failures();
  const server = createServer((req, res) => {
    limiter(req, res, () => {
      res.statusCode = 401;
      res.end('no');
    });
  });
  const url = await serve(server.listeners('request')[0] as never);
  const reply = await call(url);
  expect([reply.status, reply.headers['x-ratelimit-remaining']]).toEqual([401, '4']);
});
