import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { rateLimit } from 'limitkeeper';
import { call, closeServers, EXPRESSES, pause, serve } from '../support/http.js';
import type { Reply } from '../support/http.js';
import { failures } from '../support/limited.js';
import { STORES } from '../support/stores.js';

afterEach(closeServers);

const LICENSE = join(__dirname, '../../LICENSE');
const withStatus = (status: number) => Object.assign(new Error('as asked'), { status });

interface Way {
  readonly name: string;
  readonly answer: (req: Request, res: Response, next: NextFunction) => void;
  readonly status: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of five, after it. */
  readonly left: 4 | 5;
  /** What the headers say: the settled reading, or (they had gone out before) that of the decision, with one unit on hold. */
  readonly told: 4 | 5;
}

const WAYS: readonly Way[] = [
  {
    name: 'send',
    answer: (_q, res) => res.status(401).send('no'),
    status: 401,
    body: 'no',
    headers: { 'content-length': '2', 'content-type': 'text/html; charset=utf-8' },
    left: 4,
    told: 4,
  },
  {
    name: 'json',
    answer: (_q, res) => res.json({ ok: true }),
    status: 200,
    body: '{"ok":true}',
    headers: { 'content-type': 'application/json; charset=utf-8' },
    left: 5,
    told: 5,
  },
  {
    name: 'sendStatus',
    answer: (_q, res) => res.sendStatus(404),
    status: 404,
    body: 'Not Found',
    left: 4,
    told: 4,
  },
  {
    name: 'redirect',
    answer: (_q, res) => res.redirect('/elsewhere'),
    status: 302,
    headers: { location: '/elsewhere' },
    left: 5,
    told: 5,
  },
  {
    name: 'sendFile',
    answer: (_q, res) => res.sendFile(LICENSE),
    status: 200,
    body: readFileSync(LICENSE, 'utf8'),
    left: 5,
    told: 4,
  },
  {
    name: 'a stream that is piped',
    answer: (_q, res) => Readable.from(['a', 'b', 'c']).pipe(res.status(400)),
    status: 400,
    body: 'abc',
    left: 4,
    told: 4,
  },
  {
    name: 'write and end',
    answer: (_q, res) => {
      res.status(200).write('a');
      res.end('b');
    },
    status: 200,
    body: 'ab',
    left: 5,
    told: 4,
  },
  {
    name: 'writeHead and end',
    answer: (_q, res) => res.writeHead(401, { 'X-Own': 'yes' }).end('no'),
    status: 401,
    body: 'no',
    headers: { 'x-own': 'yes' },
    left: 4,
    told: 4,
  },
  {
    name: 'end with an encoding',
    answer: (_q, res) => res.status(400).end('bm8=', 'base64'),
    status: 400,
    body: 'no',
    left: 4,
    told: 4,
  },
  {
    name: 'end with bytes',
    answer: (_q, res) => res.end(Buffer.from('ok')),
    status: 200,
    body: 'ok',
    left: 5,
    told: 5,
  },
  {
    name: 'end without a body',
    answer: (_q, res) => res.status(204).end(),
    status: 204,
    body: '',
    left: 5,
    told: 5,
  },
  { name: '304', answer: (_q, res) => res.status(304).end(), status: 304, body: '', left: 5, told: 5 },
  {
    name: 'a status of 500',
    answer: (_q, res) => res.status(500).send('oh'),
    status: 500,
    body: 'oh',
    left: 5,
    told: 5,
  },
  { name: 'next(err)', answer: (_q, _s, next) => next(withStatus(401)), status: 401, left: 4, told: 4 },
  {
    name: 'an error thrown',
    answer: () => {
      throw withStatus(403);
    },
    status: 403,
    left: 4,
    told: 4,
  },
  {
    name: 'an answer after a while',
    answer: (_q, res) => void setTimeout(() => res.status(401).send('late'), 20),
    status: 401,
    body: 'late',
    left: 4,
    told: 4,
  },
];

describe.each(EXPRESSES)('%s', (_name, express) => {
  describe.each(STORES)('with %s', (_storeName, makeStore) => {
    test.each(WAYS)('answers by $name as without a limiter, and settles before', async way => {
      const limiter = failures({ store: makeStore() });
      const app = express();
      app.set('env', 'test');
      app.use(limiter, way.answer);
      const reply = await call(await serve(app));
      expect(reply.status).toBe(way.status);
      if (way.body !== undefined) expect(reply.body).toBe(way.body);
      expect(reply.headers).toMatchObject(way.headers ?? {});
      expect(reply.headers).toMatchObject({
        'x-ratelimit-limit': '5',
        'x-ratelimit-remaining': String(way.told),
        'ratelimit-policy': '"login";q=5;w=900',
      });
      expect(reply.headers['retry-after']).toBeUndefined();
      // No waiting here: what the client has read was settled before.
      expect((await limiter.limiter.peek('alice')).remaining).toBe(way.left);
    });

    test('a HEAD has the headers and no body, and counts once', async () => {
      const limiter = rateLimit({
        scope: 'all',
        limit: 5,
        windowSec: 900,
        keyFn: () => 'alice',
        store: makeStore(),
      });
      const app = express();
      app.use(limiter);
      app.get('/', (_req, res) => res.send('hello'));
      const reply = await call(await serve(app), { method: 'HEAD' });
      expect([reply.status, reply.body, reply.headers['content-length']]).toEqual([200, '', '5']);
      expect(reply.headers['x-ratelimit-remaining']).toBe('4');
    });

    test('the callback of end is called once', async () => {
      const called = jest.fn();
      const app = express();
      app.use(failures({ store: makeStore() }), (_req, res) => res.end('ok', called));
      expect((await call(await serve(app))).body).toBe('ok');
      expect(called).toHaveBeenCalledTimes(1);
      expect(called.mock.calls[0]).toEqual([]);
    });

    test('an answer that Node refuses to send is an error of the handler, and the error is what counts', async () => {
      const limiter = failures({ store: makeStore() });
      const app = express();
      app.set('env', 'test');
      app.use(limiter, (_req, res) => res.end(42));
      expect((await call(await serve(app))).status).toBe(500);
      expect((await limiter.limiter.peek('alice')).remaining).toBe(5);
    });

    test('the fifth wrong password is told of the block in its own answer', async () => {
      const app = express();
      app.use(failures({ blockSec: 900, store: makeStore() }), (_req, res) =>
        res.status(401).json({ error: 'wrong' }),
      );
      const url = await serve(app);
      const told: unknown[] = [];
      for (let i = 0; i < 6; i += 1) {
        const { status, headers } = await call(url);
        told.push([status, headers['x-ratelimit-remaining'], headers['retry-after']]);
      }
      expect(told).toEqual([
        [401, '4', undefined],
        [401, '3', undefined],
        [401, '2', undefined],
        [401, '1', undefined],
        [401, '0', '900'],
        [429, '0', '900'],
      ]);
    });
  });

  describe('beside a middleware that compresses', () => {
    const gzip: RequestHandler = (_req, res, next) => {
      const { write, end } = res;
      const zip = createGzip();
      zip.on('data', chunk => write.call(res, chunk, 'utf8'));
      zip.on('end', () => end.call(res, undefined, 'utf8'));
      res.write = ((chunk: string) => zip.write(chunk)) as typeof res.write;
      res.end = ((chunk?: string) => {
        res.removeHeader('Content-Length');
        res.setHeader('Content-Encoding', 'gzip');
        zip.end(chunk);
        return res;
      }) as typeof res.end;
      next();
    };

    async function unzipped(url: string): Promise<Reply> {
      const reply = await fetch(url);
      // fetch has unpacked it; that it was packed is seen in the header.
      expect(reply.headers.get('content-encoding')).toBe('gzip');
      return {
        status: reply.status,
        statusText: reply.statusText,
        headers: Object.fromEntries(reply.headers),
        body: await reply.text(),
      };
    }

    test.each(STORES)(
      '%s: mounted before the limiter it packs the whole, with settled headers',
      async (_s, make) => {
        const limiter = failures({ store: make() });
        const app = express();
        app.use(gzip, limiter, (_req, res) => res.status(200).send('hello '.repeat(100)));
        const reply = await unzipped(await serve(app));
        expect([reply.status, reply.body]).toEqual([200, 'hello '.repeat(100)]);
        expect(reply.headers['x-ratelimit-remaining']).toBe('5');
      },
    );

    test.each(STORES)('%s: mounted after it the answer is whole, too, and counted', async (_s, make) => {
      const limiter = failures({ store: make() });
      const app = express();
      app.use(limiter, gzip, (_req, res) => res.status(401).send('hello '.repeat(100)));
      const reply = await unzipped(await serve(app));
      expect([reply.status, reply.body]).toEqual([401, 'hello '.repeat(100)]);
      expect((await limiter.limiter.peek('alice')).remaining).toBe(4);
    });
  });

  test('beside another middleware that holds the end, both are done before the answer leaves', async () => {
    const saved = jest.fn();
    const session: RequestHandler = (_req, res, next) => {
      const end = res.end.bind(res) as (...args: unknown[]) => typeof res;
      res.end = ((...args: unknown[]) => {
        void pause(10).then(() => {
          saved();
          res.setHeader('X-Session', 'saved');
          end(...args);
        });
        return res;
      }) as typeof res.end;
      next();
    };
    for (const [, makeStore] of STORES) {
      for (const order of ['before', 'after']) {
        saved.mockClear();
        const limiter = failures({ store: makeStore() });
        const app = express();
        app.use(...(order === 'before' ? [session, limiter] : [limiter, session]));
        app.use((_req, res) => res.status(401).send('no'));
        const reply = await call(await serve(app));
        expect([order, reply.status, reply.body, reply.headers['x-session']]).toEqual([
          order,
          401,
          'no',
          'saved',
        ]);
        expect(reply.headers['x-ratelimit-remaining']).toBe('4');
        expect(saved).toHaveBeenCalledTimes(1);
      }
    }
  });

  test('a long stream with back-pressure arrives whole', async () => {
    const size = 4 * 1024 * 1024;
    for (const [, makeStore] of STORES) {
      const app = express();
      app.use(failures({ store: makeStore() }), (_req, res) => {
        const slow = new Transform({ transform: (chunk, _e, done) => void setImmediate(done, null, chunk) });
        Readable.from(Array.from({ length: 64 }, () => Buffer.alloc(size / 64, 'x')))
          .pipe(slow)
          .pipe(res);
      });
      expect((await call(await serve(app))).body).toHaveLength(size);
    }
  });

  test.each(STORES)(
    '%s: where the headers have gone out before, nothing is touched and nothing throws',
    async (_s, make) => {
      const limiter = rateLimit({
        scope: 'all',
        limit: 1,
        windowSec: 60,
        keyFn: () => 'alice',
        store: make(),
      });
      const behind = jest.fn();
      const app = express();
      app.use((_req, res, next) => {
        res.status(202).write('begun ');
        setTimeout(() => res.end('done'), 40);
        next();
      });
      app.use(limiter, () => behind());
      const url = await serve(app);
      for (const timesBehind of [1, 1]) {
        const reply = await call(url);
        expect([reply.status, reply.body]).toEqual([202, 'begun done']);
        expect(reply.headers['x-ratelimit-limit']).toBeUndefined();
        expect(behind).toHaveBeenCalledTimes(timesBehind);
      }
    },
  );

  test.each(STORES)(
    '%s: where the response has ended before, it still counts and nothing throws',
    async (_s, make) => {
      const limiter = failures({ store: make() });
      const app = express();
      app.use((_req, res, next) => {
        res.status(401).end('gone');
        next();
      });
      app.use(limiter, (_req, res) => res.end());
      const reply = await call(await serve(app));
      expect([reply.status, reply.body]).toEqual([401, 'gone']);
      await pause(30);
      expect((await limiter.limiter.peek('alice')).remaining).toBe(4);
    },
  );
});
