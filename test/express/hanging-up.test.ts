import type http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { byStatus, getRateLimit, MemoryStore, rateLimit, subjectHash } from 'limitkeeper';
import type { RateLimitHandler, RateLimitOptions, RuleOptions, Store } from 'limitkeeper';
import { loginLimits } from 'limitkeeper/presets';
import { call, closeServers, cutShort, EXPRESSES, Gate, pause, serve, until } from '../support/http.js';
import { RemoteStore, STORES } from '../support/stores.js';

afterEach(closeServers);

type Handler = (req: http.IncomingMessage, res: http.ServerResponse) => unknown;

/** A client that can send a request, and can hang up on one that has reached its handler. */
interface Client {
  send(password: string): Promise<number>;
  /** @param when resolves when it is time to hang up */
  abort(when: () => Promise<unknown>): Promise<void>;
  close(): Promise<void>;
}

async function overHttp1(limiter: RateLimitHandler, handler: Handler): Promise<Client> {
  const url = await serve((req: http.IncomingMessage, res: http.ServerResponse) => {
    limiter(req, res, () => void handler(req, res));
  });
  return {
    send: async password => (await call(url, { method: 'POST', headers: { 'x-password': password } })).status,
    abort: async when => {
      const { abort, gone } = cutShort(url, { method: 'POST', headers: { 'x-password': 'aborted' } });
      await when();
      abort();
      await gone;
      await pause(30);
    },
    close: async () => {},
  };
}

async function overHttp2(limiter: RateLimitHandler, handler: Handler): Promise<Client> {
  const server = http2.createServer((req, res) => {
    const [request, response] = [req, res] as unknown as [http.IncomingMessage, http.ServerResponse];
    limiter(request, response, () => void handler(request, response));
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  const session = http2.connect(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
  const open = (password: string) => {
    const stream = session.request({ ':method': 'POST', 'x-password': password });
    stream.on('error', () => {});
    stream.resume().end();
    return stream;
  };
  return {
    send: password =>
      new Promise(resolve => {
        open(password).on('response', headers => resolve(Number(headers[':status'])));
      }),
    abort: async when => {
      const stream = open('aborted');
      const closed = new Promise(done => stream.on('close', done));
      await when();
      stream.close(http2.constants.NGHTTP2_CANCEL);
      await closed;
      await pause(30);
    },
    close: async () => {
      session.destroy();
      await new Promise(done => server.close(done));
    },
  };
}

const PROTOCOLS = [
  ['HTTP/1', overHttp1],
  ['HTTP/2', overHttp2],
] as const;

/** A handler that answers when the test lets it, 200 to the right password. */
class Check {
  reached = 0;
  /** While `false` a request stays unanswered. */
  answers = true;
  readonly handler: Handler = async (req, res) => {
    this.reached += 1;
    while (!this.answers) await pause(2);
    res.statusCode = req.headers['x-password'] === 'right' ? 200 : 401;
    res.end('checked');
  };

  /** Hangs up on a request while its handler works; the handler answers afterwards. */
  async abortOne(client: Client): Promise<void> {
    const before = this.reached;
    this.answers = false;
    await client.abort(() => until(() => this.reached === before + 1));
    this.answers = true;
    await pause(10);
  }
}

const guarded = (options: Partial<RateLimitOptions & RuleOptions>, store: Store): RateLimitHandler =>
  rateLimit({
    scope: 'work',
    limit: 5,
    windowSec: 900,
    algorithm: 'fixed-window',
    keyFn: () => 'alice',
    store,
    ...options,
  } as RateLimitOptions);

describe.each(PROTOCOLS)('over %s', (_protocol, connect) => {
  describe.each(STORES)('with %s', (_store, makeStore) => {
    const obvious: NonNullable<RateLimitOptions['outcome']> = (_req, res) =>
      res.statusCode === 200 ? 'success' : 'failure';

    test.each([
      ['byStatus', byStatus],
      ['the outcome that one would write', obvious],
    ])('S3: hanging up never forgives, by %s', async (_name, outcome) => {
      const check = new Check();
      const asked = jest.fn(outcome);
      const limiter = guarded(
        { count: 'failures', resetOnSuccess: true, outcome: asked as typeof outcome },
        makeStore(),
      );
      const client = await connect(limiter, check.handler);
      for (let i = 0; i < 3; i += 1) expect(await client.send('wrong')).toBe(401);
      await check.abortOne(client);
      expect(asked).toHaveBeenCalledTimes(3);
      // The one that hung up counted, and forgave nothing: one of five is left.
      expect([await client.send('wrong'), await client.send('right'), check.reached]).toEqual([401, 429, 5]);
      await client.close();
    });

    test('S3: loginLimits: no guess is won by hanging up between two', async () => {
      const check = new Check();
      const login = loginLimits({ store: makeStore(), email: () => 'v@example.com' });
      const client = await connect(login, check.handler);
      const statuses: number[] = [];
      for (let i = 0; i < 4; i += 1) statuses.push(await client.send('wrong'));
      await check.abortOne(client);
      for (let i = 0; i < 3; i += 1) statuses.push(await client.send('wrong'));
      expect(statuses).toEqual([401, 401, 401, 401, 429, 429, 429]);
      expect(check.reached).toBe(5);
      await client.close();
    });

    test.each([
      ['successes', { count: 'successes', outcome: byStatus }],
      ['successes, optimistic', { count: 'successes', strict: false, outcome: byStatus }],
      ['successes with a reservation', { count: 'successes', reserve: true, outcome: byStatus }],
      ['failures', { count: 'failures', outcome: byStatus }],
      ['failures, optimistic', { count: 'failures', strict: false, outcome: byStatus }],
      ['all', {}],
      ['a reservation', { reserve: true }],
    ] as const)(
      'S4: %s: of aborted requests no more than the limit get any work done',
      async (_what, rule) => {
        const check = new Check();
        const limiter = guarded(rule, makeStore());
        const client = await connect(limiter, check.handler);
        for (let i = 0; i < 5; i += 1) await check.abortOne(client);
        expect([await client.send('right'), check.reached]).toEqual([429, 5]);
        await client.close();
      },
    );

    test('S3, S4: hanging up at every moment: five guesses reach the check, and none is forgiven', async () => {
      const check = new Check();
      const login = loginLimits({
        store: makeStore(),
        email: () => 'v@example.com',
        resolve: { limit: 1000 },
      });
      const client = await connect(login, (req, res) => setTimeout(() => void check.handler(req, res), 8));
      // From before the decision to after the answer.
      for (let i = 0; i < 24; i += 1) await client.abort(() => pause(i));
      await pause(30);
      expect(check.reached).toBeLessThanOrEqual(5);
      expect(await client.send('right')).toBe(429);
      await client.close();
    });

    test('S3: an answer in the moment between the cut and the news of it reaches nobody', async () => {
      const outcome = jest.fn(byStatus);
      const limiter = guarded(
        { count: 'failures', resetOnSuccess: true, outcome: outcome as typeof byStatus },
        makeStore(),
      );
      let reached = 0;
      const client = await connect(limiter, (req, res) => {
        reached += 1;
        const { stream } = res as { stream?: { destroy(): void } };
        (stream ?? req.socket).destroy();
        res.end('checked');
      });
      await client.abort(() => until(() => reached === 1));
      expect(outcome).not.toHaveBeenCalled();
      expect((await limiter.limiter.peek('alice')).remaining).toBe(4);
      await client.close();
    });

    describe('S4: a stream whose real cost is known only after the client has left', () => {
      const SETTLING: Record<
        string,
        (req: http.IncomingMessage, res: http.ServerResponse, settle: () => void) => void
      > = {
        'in the close of the response': (_req, res, settle) => void res.on('close', settle),
        'in the close of the request': (req, _res, settle) => void req.on('close', settle),
        'in its finally': (_req, res, settle) => void res.on('close', () => setTimeout(settle, 20)),
      };

      test.each(
        Object.entries(SETTLING).flatMap(([how, when]) =>
          (['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket'] as const).map(
            algorithm => [how, algorithm, when] as const,
          ),
        ),
      )('settles %s: that is what counts (%s)', async (_how, algorithm, when) => {
        const limiter = guarded(
          { algorithm, limit: 1000, windowSec: 3_600_000, cost: 800, reserve: true, holdSec: 300 },
          makeStore(),
        );
        let streaming = 0;
        let settled = 0;
        const client = await connect(limiter, (req, res) => {
          when(req, res, () => {
            void getRateLimit(req)
              .settle(5)
              .then(() => (settled += 1));
          });
          res.writeHead(200, { 'content-type': 'text/event-stream' });
          res.write('data: token\n\n');
          streaming += 1;
        });
        await client.abort(() => until(() => streaming === 1));
        await until(() => settled === 1);
        expect((await limiter.limiter.peek('alice')).remaining).toBe(995);
        const [cell] = await limiter.limiter.inspect('alice');
        expect(cell?.cell.counters[0]?.holds).toEqual([]);
        await client.close();
      });

      test('settles more than the estimate: the rest is charged', async () => {
        const limiter = guarded({ limit: 1000, cost: 100, reserve: true }, makeStore());
        let settled = false;
        const client = await connect(limiter, async (req, res) => {
          res.end('answered');
          await pause(30);
          await getRateLimit(req).settle(250);
          settled = true;
        });
        await client.send('right');
        await until(() => settled);
        expect((await limiter.limiter.peek('alice')).remaining).toBe(750);
        await client.close();
      });
    });

    test('S3: what had begun to answer has the status that it sent', async () => {
      const limiter = guarded({ count: 'failures', strict: false, outcome: byStatus }, makeStore());
      let streaming = 0;
      const client = await connect(limiter, (_req, res) => {
        res.writeHead(206);
        res.write('a part of a video');
        streaming += 1;
      });
      for (let i = 1; i <= 6; i += 1) await client.abort(() => until(() => streaming === i));
      expect(streaming).toBe(6);
      expect((await limiter.limiter.peek('alice')).remaining).toBe(5);
      await client.close();
    });
  });
});

describe.each(STORES)(
  'S3, S4: requests that came behind a slow one on their connection, with %s',
  (_s, makeStore) => {
    test.each([
      ['never answer', false],
      ['answer too late', true],
    ])('and %s: each counts when the client hangs up, and none is a success', async (_what, answers) => {
      const outcome = jest.fn(byStatus);
      const limiter = guarded(
        { count: 'failures', resetOnSuccess: true, limit: 30, outcome: outcome as typeof byStatus },
        makeStore(),
      );
      const warned = jest.fn();
      process.on('warning', warned);
      const answer: (() => void)[] = [];
      const url = await serve((req: http.IncomingMessage, res: http.ServerResponse) => {
        req.resume();
        if (req.url === '/slow') return;
        limiter(req, res, () => void answer.push(() => res.end('checked')));
      });
      const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
      const guess = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}';
      socket.write(`GET /slow HTTP/1.1\r\nHost: a\r\n\r\n${guess.repeat(20)}`);
      await until(() => answer.length === 20);
      socket.destroy();
      await pause(30);
      if (answers) for (const send of answer) send();
      await pause(30);
      process.off('warning', warned);
      const [stored] = await limiter.limiter.inspect('alice');
      const counter = stored?.cell.counters[0];
      expect([counter?.state?.[1], counter?.holds]).toEqual([20, []]);
      expect(outcome).not.toHaveBeenCalled();
      // One listener a connection, too.
      expect(warned).not.toHaveBeenCalled();
    });
  },
);

describe('S4: a late settle after the store has failed', () => {
  test.each(['open', 'local'] as const)(
    'fail mode %s: corrects nothing, since nothing is known to be charged, and leaves the holds of others',
    async failMode => {
      let calls = 0;
      const failed = new Gate();
      // The third call, the end's, is carried out when it has been given up.
      const store = new RemoteStore(new MemoryStore(), () => ((calls += 1) === 3 ? failed.passed : pause(1)));
      const alice = { limit: 1000, windowSec: 900, algorithm: 'fixed-window', keyFn: () => 'alice' } as const;
      const limiter = rateLimit({
        rules: [
          { ...alice, scope: 'work', cost: 100, reserve: true },
          // Its charge makes the local store answer for both.
          { ...alice, scope: 'bad', count: 'failures', strict: false },
        ],
        outcome: () => 'failure',
        store,
        storeTimeoutMs: 200,
        failMode,
      });
      limiter.limiter.on('store-error', () => {
        failed.open();
      });
      let late: Promise<void> | undefined;
      const url = await serve((req: http.IncomingMessage, res: http.ServerResponse) => {
        limiter(req, res, () => {
          if (req.url === '/other') return;
          res.end('done');
          late = failed.passed.then(() => pause(30)).then(() => getRateLimit(req).settle(5));
        });
      });
      cutShort(`${url}/other`);
      await until(() => calls === 1);
      await pause(20);
      await call(url);
      await until(() => late !== undefined);
      await late;
      const stored = await store.inner.inspect(subjectHash('alice'));
      const counter = stored.find(({ scope }) => scope === 'work')?.cell.counters[0];
      expect([counter?.state?.[1], counter?.holds[1], counter?.holds.length]).toEqual([100, 100, 2]);
      expect(store.asked).toEqual(['reserve peek', 'reserve peek', 'settle charge']);
    },
  );
});

test.each(EXPRESSES)(
  'S3: %s: a player that seeks, a closed event stream and a cancelled download are no failures',
  async (_name, express) => {
    const limiter = guarded({ count: 'failures', outcome: byStatus }, new MemoryStore());
    const app = express();
    let started = 0;
    app.use(limiter, (_req, _res, next) => {
      started += 1;
      next();
    });
    app.get('/download', (_req, res) => void res.write('x'.repeat(100_000)));
    app.get('/events', (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: 1\n\n');
    });
    const url = await serve(app);
    for (const path of ['/download', '/events', '/download', '/events', '/download', '/events']) {
      const before = started;
      const { abort, gone } = cutShort(`${url}${path}`);
      await until(() => started === before + 1);
      await pause(20);
      abort();
      await gone;
      await pause(20);
    }
    expect([(await limiter.limiter.peek('alice')).remaining, started]).toEqual([5, 6]);
  },
);
