import { Readable, pipeline } from 'node:stream';
import compression from 'compression';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import session from 'express-session';
import { byStatus, rateLimit } from 'limitkeeper';
import type { RateLimitHandler, Store } from 'limitkeeper';
import { call, closeServers, EXPRESSES, pause, serve } from '../support/http.js';
import type { Express, Reply } from '../support/http.js';
import { STORES } from '../support/stores.js';
import { forgetWarnings, watchWarnings } from '../support/warnings.js';

beforeEach(forgetWarnings);
afterEach(closeServers);
afterEach(() => jest.restoreAllMocks());

const OTHERS = {
  session: () =>
    session({ secret: 'not much of one', resave: true, saveUninitialized: true, genid: () => 'the same' }),
  compression: () => compression({ threshold: 0 }),
} as const;

type Part = 'limit' | keyof typeof OTHERS;

const ORDERS: readonly (readonly Part[])[] = [
  ['limit'],
  ['session', 'limit'],
  ['limit', 'session'],
  ['compression', 'limit'],
  ['limit', 'compression'],
  ['session', 'compression', 'limit'],
  ['limit', 'compression', 'session'],
  ['limit', 'session', 'limit'],
  ['limit', 'compression', 'limit'],
];

const LONG = 'x'.repeat(300_000);

/** Every way to answer; `called` is told of callbacks. */
const WAYS: Record<string, (req: Request, res: Response, called: (what: string) => void) => void> = {
  'end()': (_req, res) => void res.end(),
  'end(text)': (_req, res) => void res.end('text'),
  'end(text, encoding)': (_req, res) => void res.end('ä€', 'latin1'),
  'end(bytes)': (_req, res) => void res.end(new Uint8Array([65, 66])),
  'end(callback)': (_req, res, called) => void res.end(() => called('end')),
  'end(text, callback)': (_req, res, called) => void res.end('text', () => called('end')),
  'end(text, encoding, callback)': (_req, res, called) => void res.end('text', 'utf8', () => called('end')),
  'end(null)': (_req, res) => void res.end(null),
  send: (_req, res) => void res.send('text'),
  'send a long text': (_req, res) => void res.send(LONG),
  json: (_req, res) => void res.json({ a: 1 }),
  'json, and end again': (_req, res) => void res.json({ a: 1 }).end(),
  'sendStatus 204': (_req, res) => void res.sendStatus(204),
  redirect: (_req, res) => res.redirect(303, '/elsewhere'),
  'write and end later': (_req, res) => {
    res.write('a');
    res.write('b');
    setTimeout(() => res.end('c'), 5);
  },
  'write(text, callback)': (_req, res, called) => {
    res.write('a', () => called('write'));
    res.end('b');
  },
  'writeHead and end': (_req, res) => void res.writeHead(201, { 'X-Own': 'yes' }).end('12345'),
  'writeHead with a length': (_req, res) => void res.writeHead(200, { 'Content-Length': '5' }).end('12345'),
  'flushHeaders and end': (_req, res) => {
    res.flushHeaders();
    res.end('text');
  },
  pipe: (_req, res) => void Readable.from([LONG, LONG]).pipe(res),
  pipeline: (_req, res, called) =>
    void pipeline(Readable.from(['abc', 'def']), res, error => called(error ? 'failed' : 'done')),
  sendFile: (_req, res, called) => res.sendFile(__filename, error => called(error ? 'failed' : 'done')),
  cookie: (_req, res) => void res.cookie('a', 'b').send('text'),
  'an error': () => {
    throw new Error('of the handler');
  },
  'answers, and passes on an error': (_req, res) => {
    res.send('first');
    throw new Error('second');
  },
};

/** A session dies of the one, and answers its own value for the other: as it would without us. */
const NOT_BEHIND_A_SESSION: typeof WAYS = {
  'end of a number': (_req, res) => void res.end(5),
  'the value of end': (_req, res, called) => called(String(res.end('text') === res)),
};

interface Seen {
  readonly reply: Pick<Reply, 'status' | 'statusText' | 'body'> | string;
  readonly headers: readonly string[];
  readonly called: readonly string[];
}

const OURS = /^(?:x-ratelimit-|ratelimit|retry-after)/;

async function look(
  express: Express,
  parts: readonly RequestHandler[],
  way: (typeof WAYS)[string],
): Promise<Seen> {
  const called: string[] = [];
  const app = express();
  app.set('env', 'test');
  for (const part of parts) app.use(part);
  app.get('/', (req, res) => {
    way(req, res, what => called.push(what));
  });
  app.use(((error: Error, _req: Request, res: Response, next: NextFunction) => {
    if (res.headersSent) next(error);
    else res.status(500).send(`error page: ${error.name}`);
  }) as unknown as RequestHandler);
  const server = await serve(app);
  const reply = await call(server, { headers: { 'Accept-Encoding': 'identity' } }).catch(
    (error: unknown) => `no answer: ${String(error)}`,
  );
  await pause(10);
  if (typeof reply === 'string') return { reply, headers: [], called };
  const { status, statusText, body, headers } = reply;
  const theirs = Object.entries(headers)
    .filter(([name]) => !OURS.test(name) && !['date', 'connection', 'keep-alive'].includes(name))
    .map(([name, value]) => `${name}: ${String(value).replace(/Expires=[^;]*/, '')}`)
    .sort();
  return { reply: { status, statusText, body }, headers: theirs, called };
}

const failures = (store: Store, scope = 'login', limit = 1000): RateLimitHandler =>
  rateLimit({
    scope,
    limit,
    windowSec: 900,
    blockSec: 900,
    algorithm: 'fixed-window',
    count: 'failures',
    outcome: byStatus,
    store,
  });

describe.each(EXPRESSES)('W1: %s', (_name, express) => {
  describe.each(STORES)('with %s', (_store, makeStore) => {
    test.each(ORDERS.map(order => [order.join(', '), order] as const))(
      '%s: every way to answer, as without us',
      async (_order, order) => {
        const others = (): RequestHandler[] =>
          order.flatMap(part => (part === 'limit' ? [] : [OTHERS[part]()]));
        const ways = order.includes('session') ? WAYS : { ...WAYS, ...NOT_BEHIND_A_SESSION };
        for (const [way, answer] of Object.entries(ways)) {
          const without = await look(express, others(), answer);
          const limiter = (i: number) =>
            failures(makeStore(), `rule ${String(i)}`) as unknown as RequestHandler;
          const withUs = await look(
            express,
            order.map((part, i) => (part === 'limit' ? limiter(i) : OTHERS[part]())),
            answer,
          );
          expect({ way, ...withUs }).toEqual({ way, ...without });
        }
      },
      60_000,
    );
  });
});

test.each(EXPRESSES)(
  'W2: %s: one listener a response, however many limiters settle at its end',
  async (_name, express) => {
    const warned = jest.fn();
    process.on('warning', warned);
    const app = express();
    const [, makeStore] = STORES[1]!;
    const store = makeStore();
    for (let i = 0; i < 15; i += 1) app.use(failures(store, `rule ${String(i)}`));
    const listeners: number[] = [];
    app.get('/', (_req, res) => {
      listeners.push(res.listenerCount('close'));
      res.status(401).send('no');
    });
    const { headers } = await call(await serve(app));
    await pause(20);
    process.off('warning', warned);
    expect(listeners[0]).toBeLessThanOrEqual(2);
    expect(warned).not.toHaveBeenCalled();
    expect(String(headers['ratelimit']).match(/r=999/g)).toHaveLength(15);
  },
);

describe.each(EXPRESSES)('W3: %s', (_name, express) => {
  /** The fifth wrong password's own answer, and the warnings by then. */
  async function fifth(
    order: readonly Part[],
    store: Store,
  ): Promise<{ reply: Reply; warned: readonly string[] }> {
    const limiter = failures(store, 'login', 5) as unknown as RequestHandler;
    const app = express();
    for (const part of order) app.use(part === 'limit' ? limiter : OTHERS[part]());
    app.get('/', (_req, res) => void res.status(401).json({ error: 'wrong password' }));
    const url = await serve(app);
    const warned = watchWarnings();
    for (let i = 0; i < 4; i += 1) await call(url);
    return { reply: await call(url), warned };
  }

  describe.each(STORES)('with %s', (_store, makeStore) => {
    test.each(
      ORDERS.filter(order => order.indexOf('limit') === order.length - 1).map(
        order => [order.join(', '), order] as const,
      ),
    )('%s: the fifth wrong password announces the block', async (_order, order) => {
      const { reply, warned } = await fifth(order, makeStore());
      expect([reply.status, reply.headers['x-ratelimit-remaining'], reply.headers['retry-after']]).toEqual([
        401,
        '0',
        '900',
      ]);
      expect(warned).not.toContain('LIMITKEEPER_HEADERS_SENT_EARLY');
    });

    test.each(['session', 'compression'] as const)(
      'limit, %s, limit: the second announces its block, however early the first has met the response',
      async between => {
        const app = express();
        app.use(failures(makeStore(), 'tokens') as unknown as RequestHandler);
        app.use(OTHERS[between]());
        app.use(failures(makeStore(), 'login', 5) as unknown as RequestHandler);
        app.get('/', (_req, res) => void res.status(401).json({ error: 'wrong password' }));
        const url = await serve(app);
        const warned = watchWarnings();
        const told: unknown[] = [];
        for (let i = 0; i < 5; i += 1) {
          const { headers } = await call(url);
          told.push([headers['x-ratelimit-remaining'], headers['retry-after']]);
        }
        expect(told.at(0)).toEqual(['4', undefined]);
        expect(told.at(4)).toEqual(['0', '900']);
        expect(warned).not.toContain('LIMITKEEPER_HEADERS_SENT_EARLY');
      },
    );

    test.each([[['limit', 'session']], [['limit', 'compression']]] as const)(
      '%s: where it comes too late, a warning says which order works',
      async order => {
        const { reply, warned } = await fifth(order, makeStore());
        expect(reply.status).toBe(401);
        const announced = reply.headers['retry-after'] === '900';
        expect(warned.includes('LIMITKEEPER_HEADERS_SENT_EARLY')).toBe(!announced);
      },
    );
  });
});
