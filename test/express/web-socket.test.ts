import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import expressWs from 'express-ws';
import { byStatus, rateLimit } from 'limitkeeper';
import type { RateLimitHandler } from 'limitkeeper';
import WebSocket from 'ws';
import { STORES } from '../support/stores.js';

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

  test('on app.use: allowed goes on, refused is closed', async () => {
    await serving(
      app => {
        app.use(two({ store: makeStore() }));
        app.ws('/', socket => socket.send('welcome'));
      },
      async url => {
        expect(await visit(url)).toBe('message welcome');
        expect(await visit(url)).toBe('message welcome');
        expect(await visit(url)).toMatch(/^closed/);
      },
    );
  });

  test('a rule that counts by outcome settles when the socket closes', async () => {
    const limiter = two({ store: makeStore(), count: 'failures', outcome: byStatus });
    await serving(
      app => app.ws('/', limiter, socket => socket.send('welcome')),
      async url => {
        for (let i = 0; i < 5; i += 1) {
          expect(await visit(url)).toBe('message welcome');
          await new Promise(done => setTimeout(done, 30));
        }
        expect((await limiter.limiter.peek('127.0.0.1')).remaining).toBe(2);
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
