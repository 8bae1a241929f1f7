import { once } from 'node:events';
import { createServer, ServerResponse } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import express from 'express';
import expressWs from 'express-ws';
import { byStatus, rateLimit } from 'limitkeeper';
import type { RateLimitHandler } from 'limitkeeper';
import WebSocket, { WebSocketServer } from 'ws';
import { pause } from '../support/http.js';
import { RemoteStore, STORES } from '../support/stores.js';

/** What a client sees: the first message, or how it was closed. */
async function visit(url: string): Promise<string> {
  const socket = new WebSocket(url);
  const seen = await Promise.race([
    once(socket, 'message').then(([data]) => `message ${String(data)}`),
    once(socket, 'close').then(([code, reason]) => `closed ${String(code)} ${String(reason)}`),
  ]);
  socket.terminate();
  return seen;
}

async function serving(
  mount: (app: expressWs.Application) => void,
  check: (url: string) => Promise<void>,
): Promise<void> {
  const { app } = expressWs(express());
  mount(app);
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await check(`ws://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const two = (options: object): RateLimitHandler =>
  rateLimit({ scope: 'ws', limit: 2, windowSec: 60, algorithm: 'fixed-window', ...options });

test.each(STORES)(
  'W6: a server of its own, which asks before the handshake, with %s: a refused one is answered 429 over HTTP',
  async (_name, makeStore) => {
    const limiter = two({ store: makeStore() });
    const sockets = new WebSocketServer({ noServer: true });
    const server = createServer();
    server.on('upgrade', (req, socket: Socket, head) => {
      const res = new ServerResponse(req);
      res.assignSocket(socket);
      limiter(req, res, () => {
        res.detachSocket(socket);
        sockets.handleUpgrade(req, socket, head, open => open.send('welcome'));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `ws://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    expect([await visit(url), await visit(url)]).toEqual(['message welcome', 'message welcome']);
    const refused = new WebSocket(url);
    const [, answer] = (await once(refused, 'unexpected-response')) as [unknown, IncomingMessage];
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([429, '60']);
    refused.on('error', () => {}).terminate();
    server.closeAllConnections();
    server.close();
  },
);

describe.each(STORES)('W6: express-ws with %s', (_name, makeStore) => {
  test('on app.ws: allowed goes on, refused is told 429 and closed', async () => {
    await serving(
      app => app.ws('/', two({ store: makeStore() }), socket => socket.send('welcome')),
      async url => {
        expect([await visit(url), await visit(url), await visit(url)]).toEqual([
          'message welcome',
          'message welcome',
          'closed 1013 429 rate_limit_exceeded, retry after 60 s',
        ]);
      },
    );
  });

  test('on app.use: the same', async () => {
    await serving(
      app => {
        app.use(two({ store: makeStore() }));
        app.ws('/', socket => socket.send('welcome'));
      },
      async url => {
        expect([await visit(url), await visit(url), await visit(url)]).toEqual([
          'message welcome',
          'message welcome',
          'closed 1013 429 rate_limit_exceeded, retry after 60 s',
        ]);
      },
    );
  });

  const MOUNTS: readonly (readonly [
    string,
    (app: expressWs.Application, limiter: RateLimitHandler) => void,
  ])[] = [
    ['app.ws', (app, limiter) => app.ws('/', limiter, socket => socket.send('welcome'))],
    [
      'app.use',
      (app, limiter) => {
        app.use(limiter);
        app.ws('/', socket => socket.send('welcome'));
      },
    ],
  ];

  describe.each(MOUNTS)('on %s', (_where, mount) => {
    test.each([
      ['failures', { count: 'failures' }, 2],
      ['a reservation', { reserve: true, limit: 100, cost: 10 }, 50],
    ] as const)('%s: settled when the socket closes', async (_what, rule, left) => {
      const limiter = two({ store: makeStore(), outcome: byStatus, ...rule });
      await serving(
        app => {
          mount(app, limiter);
        },
        async url => {
          for (let i = 0; i < 5; i += 1) {
            expect(await visit(url)).toBe('message welcome');
            await pause(30);
          }
          expect((await limiter.limiter.peek('127.0.0.1')).remaining).toBe(left);
          const [stored] = await limiter.limiter.inspect('127.0.0.1');
          expect(stored?.cell.counters[0]?.holds ?? []).toEqual([]);
        },
      );
    });

    test('onLimited answers in its own way, and the socket is closed', async () => {
      const limiter = two({
        store: makeStore(),
        limit: 0,
        onLimited: (_req: unknown, res: express.Response) => res.json({ wait: true }),
      });
      await serving(
        app => {
          mount(app, limiter);
        },
        async url => {
          expect(await visit(url)).toMatch(/^closed 1013 429 rate_limit_exceeded/);
        },
      );
    });

    test('a store that is away, and fail mode closed: 503', async () => {
      const store = new RemoteStore();
      store.behaviour = 'reject';
      await serving(
        app => {
          mount(app, two({ store, failMode: 'closed' }));
        },
        async url => {
          expect(await visit(url)).toMatch(/^closed 1013 503 rate_limiter_unavailable, retry after \d+ s$/);
        },
      );
    });
  });

  test('what a client sends at once waits for the handler', async () => {
    const echo = (socket: WebSocket): void => {
      socket.on('message', (data: Buffer) => {
        socket.send(`echo ${data.toString()}`);
      });
    };
    await serving(
      app => {
        app.use(two({ store: makeStore(), scope: 'used' }));
        app.ws('/', two({ store: makeStore() }), echo as never);
      },
      async url => {
        const socket = new WebSocket(url);
        socket.on('open', () => socket.send('first'));
        const [data] = await once(socket, 'message');
        expect(String(data)).toBe('echo first');
        socket.terminate();
      },
    );
  });

  test('two limiters on one socket: what the second refuses, the first does not count', async () => {
    const first = two({ store: makeStore(), scope: 'first', reserve: true, limit: 100, cost: 10 });
    await serving(
      app => app.ws('/', first, two({ store: makeStore(), limit: 0 }), () => {}),
      async url => {
        expect(await visit(url)).toMatch(/^closed 1013 429/);
        await pause(30);
        expect((await first.limiter.peek('127.0.0.1')).remaining).toBe(100);
      },
    );
  });

  test('an error of a callback reaches the error handlers', async () => {
    const failing = two({
      store: makeStore(),
      keyFn: () => {
        throw new Error('no key');
      },
    });
    const errors: unknown[] = [];
    await serving(
      app => {
        app.ws('/', failing, () => {});
        app.use(((error: Error, req: { ws?: WebSocket }, _res: unknown, _next: unknown) => {
          errors.push(error.message);
          req.ws?.close(1011);
        }) as unknown as express.ErrorRequestHandler);
      },
      async url => {
        expect(await visit(url)).toBe('closed 1011 ');
      },
    );
    expect(errors).toEqual(['no key']);
  });
});
