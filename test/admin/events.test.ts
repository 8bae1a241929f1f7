import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLimiter, MemoryStore, subjectHash } from '../../src/index.js';
import { adminApp, adminAppOf, asAdmin, asReader, twoLimiters, WRONG_KEY } from '../support/admin.js';
import type { AdminApp } from '../support/admin.js';
import { until } from '../support/http.js';
import { RemoteStore } from '../support/stores.js';

const servers: http.Server[] = [];

async function listen({ app }: AdminApp): Promise<string> {
  const server = http.createServer(app);
  servers.push(server);
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/admin/events`;
}

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise(done => server.close(done));
  }
});

interface Stream {
  readonly response: http.IncomingMessage;
  readonly text: () => string;
  readonly events: () => { readonly type: string; readonly [member: string]: unknown }[];
  readonly ended: () => boolean;
}

function open(url: string, headers: http.OutgoingHttpHeaders = asReader): Promise<Stream> {
  return new Promise((resolve, reject) => {
    http
      .get(url, { headers, agent: false }, response => {
        let text = '';
        let ended = false;
        response.setEncoding('utf8').on('data', chunk => (text += String(chunk)));
        response.on('end', () => (ended = true)).on('error', () => undefined);
        resolve({
          response,
          text: () => text,
          events: () => [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!)),
          ended: () => ended,
        });
      })
      .on('error', reject);
  });
}

describe.each(['4', '5'] as const)('GET /events with Express %s', major => {
  const appWith = adminAppOf(major);

  it('opens to keys as every GET route does, and to nobody where none is configured', async () => {
    const url = await listen(appWith());
    const closed = await listen(appWith({ adminKey: '' }));
    const status = async (at: string, headers: http.OutgoingHttpHeaders) => {
      const { response } = await open(at, headers);
      response.destroy();
      return response.statusCode;
    };
    expect(await status(url, {})).toBe(403);
    expect(await status(url, { 'X-Admin-Key': WRONG_KEY })).toBe(403);
    expect(await status(url, asAdmin)).toBe(200);
    expect(await status(url, asReader)).toBe(200);
    expect(await status(closed, asAdmin)).toBe(403);
  });

  it('streams refusals, blocks and what operators do, with hashes only', async () => {
    const limiters = twoLimiters();
    const app = appWith({ limiters });
    const stream = await open(await listen(app));
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
    });
    for (let i = 0; i <= 5; i += 1) await limiters[0]!.consume('alice@example.com');
    await until(() => stream.events().length === 2);
    await app.post('/unblock', { subject: { parts: ['alice@example.com'] } });
    await app.post('/reset', { subject: { parts: ['alice@example.com'] } });
    await app.post('/block', { subject: { parts: ['alice@example.com'] }, scope: 'api', blockSec: 5 });
    await until(() => stream.events().length === 5);
    const of = { scope: 'api', subjectHash: subjectHash('alice@example.com'), at: expect.any(Number) };
    expect(stream.events()).toEqual([
      { type: 'blocked', ...of, manual: false, retryAfterMs: 120_000 },
      { type: 'refused', ...of, reason: 'limit', retryAfterMs: 120_000 },
      { type: 'unblocked', ...of },
      { type: 'reset', ...of },
      { type: 'blocked', ...of, manual: true },
    ]);
    expect(stream.text()).not.toContain('alice');
    expect(stream.text()).toMatch(/^event: blocked\ndata: /m);
  });
});

describe('the live stream', () => {
  it('tells of a store that fails and is back', async () => {
    const store = new RemoteStore(new MemoryStore(), 0);
    const limiter = createLimiter({ scope: 'api', limit: 5, windowSec: 60, store });
    const { app, get, ...rest } = adminApp({ limiters: [limiter] });
    const stream = await open(await listen({ app, get, ...rest }));
    store.behaviour = 'reject';
    await limiter.consume('alice');
    expect((await get('/scopes')).body.scopes[0]).toMatchObject({
      degraded: 'open',
      totals: { allowed: 0, storeErrors: 1 },
    });
    store.behaviour = 'answer';
    await limiter.consume('alice');
    await until(() => stream.events().length === 3);
    expect(stream.events()).toMatchObject([
      { type: 'store-error', scopes: ['api'], code: 'ERR_LIMITKEEPER_STORE' },
      { type: 'degraded', scopes: ['api'], failMode: 'open' },
      { type: 'recovered', scopes: ['api'] },
    ]);
    expect((await get('/scopes')).body.scopes[0]).toMatchObject({ degraded: null });
  });

  it('bundles a flood and counts what it leaves out', async () => {
    const limiter = createLimiter({ scope: 'api', limit: 0, windowSec: 60, store: new MemoryStore() });
    const app = adminApp({ limiters: [limiter] });
    const stream = await open(await listen(app));
    await Promise.all(Array.from({ length: 5000 }, (_, i) => limiter.consume(i)));
    await until(() => stream.text().includes('event: dropped'));
    const refusals = stream.events().filter(({ type }) => type === 'refused').length;
    const dropped = stream.events().reduce((sum, { count = 0 }) => sum + (count as number), 0);
    // Bundles of a hundred; the loop may have been busy for longer than one of them takes.
    expect(refusals + dropped).toBe(5000);
    expect(refusals).toBeLessThanOrEqual(500);
  });

  it('keeps little for a reader who does not read', async () => {
    const limiter = createLimiter({
      scope: 'x'.repeat(120),
      limit: 0,
      windowSec: 60,
      store: new MemoryStore(),
    });
    const app = adminApp({ limiters: [limiter] });
    const responses: http.ServerResponse[] = [];
    const { app: inner } = app;
    const server = http.createServer((req, res) => {
      responses.push(res);
      inner(req, res);
    });
    servers.push(server);
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    const { response } = await open(
      `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/admin/events`,
    );
    response.pause();
    // Nothing of it leaves: the kernel's buffers are taken out of the test.
    responses[0]!.socket!.cork();
    for (let round = 0; round < 8; round += 1) {
      for (let i = 0; i < 100; i += 1) await limiter.consume(i);
      await new Promise(done => setTimeout(done, 220));
    }
    // 64 kB may wait, and one bundle of a hundred events of some 400 bytes on top.
    expect(responses[0]!.writableLength).toBeLessThan(64 * 1024 + 100 * 600);
    expect(responses[0]!.writableLength).toBeGreaterThan(32 * 1024);
    response.destroy();
  });

  it('says now and then that it is still there, and lets go of whoever takes nothing', async () => {
    const fast = ['setTimeout', 'setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] as const;
    jest.useFakeTimers({ doNotFake: [...fast, 'clearTimeout', 'clearImmediate'] });
    try {
      const limiter = createLimiter({
        scope: 'x'.repeat(120),
        limit: 0,
        windowSec: 60,
        store: new MemoryStore(),
      });
      const responses: http.ServerResponse[] = [];
      const { app: inner } = adminApp({ limiters: [limiter] });
      const server = http.createServer((req, res) => {
        responses.push(res);
        inner(req, res);
      });
      servers.push(server);
      await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
      const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/admin/events`;
      const awake = await open(url);
      const asleep = await open(url);
      asleep.response.pause();
      responses[1]!.socket!.cork();
      jest.advanceTimersByTime(15_000);
      await until(() => awake.text().includes(': still here'));
      for (let round = 0; round < 5; round += 1) {
        for (let i = 0; i < 100; i += 1) await limiter.consume(i);
        await new Promise(done => setTimeout(done, 220));
      }
      expect(responses[1]!.writableLength).toBeGreaterThan(64 * 1024);
      expect(responses.map(({ destroyed }) => destroyed)).toEqual([false, false]);
      jest.advanceTimersByTime(15_000);
      expect(responses.map(({ destroyed }) => destroyed)).toEqual([false, true]);
      awake.response.destroy();
      asleep.response.destroy();
    } finally {
      jest.useRealTimers();
    }
  });

  it('has a place for 32 readers, and one again when somebody leaves', async () => {
    const url = await listen(adminApp());
    const streams = await Promise.all(Array.from({ length: 32 }, () => open(url)));
    const last = await open(url);
    expect([last.response.statusCode, last.response.headers['retry-after']]).toEqual([503, '30']);
    streams[0]!.response.destroy();
    let again: Stream | undefined;
    const end = Date.now() + 2000;
    while (again?.response.statusCode !== 200 && Date.now() < end) again = await open(url);
    expect(again?.response.statusCode).toBe(200);
    for (const { response } of [...streams, again!]) response.destroy();
  });

  it('ends with close(), and the router listens no more', async () => {
    const limiters = twoLimiters();
    const app = adminApp({ limiters });
    const stream = await open(await listen(app));
    expect(limiters[0]!.engine.events.has('refused')).toBe(true);
    app.router.close();
    await until(stream.ended);
    for (const name of ['allowed', 'refused', 'blocked', 'store-error'] as const) {
      expect(limiters[0]!.engine.events.has(name)).toBe(false);
    }
    expect((await app.get('/scopes')).status).toBe(200);
  });

  it('answers HEAD without a stream', async () => {
    const url = await listen(adminApp());
    const status = await new Promise<number | undefined>(resolve => {
      http
        .request(url, { method: 'HEAD', headers: asAdmin, agent: false }, res => {
          res.resume().on('end', () => {
            resolve(res.statusCode);
          });
        })
        .end();
    });
    expect(status).toBe(200);
  });
});
