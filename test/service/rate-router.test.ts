import supertest from 'supertest';
import { createLimiter, MemoryStore, subjectHash } from '../../src/index.js';
import type { Store } from '../../src/index.js';
import { rateRouter } from '../../src/service/index.js';
import type { RateServiceOptions } from '../../src/service/index.js';
import { NOON } from '../support/decisions.js';
import { EXPRESSES } from '../support/http.js';
import { asAdmin, consumeAs, expectProblem, rateApp } from '../support/service.js';
import { RemoteStore } from '../support/stores.js';

const NOON_SEC = NOON / 1000;
const userHash = subjectHash('42');
const SEARCH = { endpoint: '/search' };

describe.each(EXPRESSES)('with %s', (_, express) => {
  it('lets ten requests of a user through in any sixty seconds, and tells when the next one fits', async () => {
    const { check, status, clock } = rateApp({}, express);
    // One every second from 0 to 9 s.
    for (let i = 0; i < 10; i += 1) {
      const reply = await check('42', SEARCH);
      expect([reply.status, reply.body]).toEqual([
        200,
        { allowed: true, limit: 10, used: i + 1, remaining: 9 - i, windowSec: 60, reset: NOON_SEC + i + 60 },
      ]);
      clock.advance(1000);
    }
    const refused = await check('42', SEARCH);
    expectProblem(refused, 429);
    // It is 10 s: the first entry leaves at 60 s.
    expect(refused.headers['retry-after']).toBe('50');
    expect(refused.body).toMatchObject({
      allowed: false,
      limit: 10,
      used: 10,
      remaining: 0,
      reset: NOON_SEC + 60,
    });
    expect((await status('42', '/search')).body).toMatchObject({ used: 10, remaining: 0 });
    clock.advance(49_999);
    expectProblem(await check('42', SEARCH), 429);
    clock.advance(1);
    expect((await check('42', SEARCH)).body).toMatchObject({ used: 10, remaining: 0 });
    expectProblem(await check('42', SEARCH), 429);
  });

  it('counts users and endpoints apart', async () => {
    const { check } = rateApp({ limit: 1 }, express);
    const endpoints = [
      '/search',
      '/Search',
      '/search/',
      '1.2.3.4',
      '1.2.3.4:80',
      '::ffff:1.2.3.4',
      'a\0b',
      'a',
      '\ud800',
      '\udfff',
      '\ufffd',
      '%',
      '😀',
    ];
    for (const user of ['4', '42']) {
      for (const endpoint of endpoints) expect((await check(user, { endpoint })).status).toBe(200);
    }
    for (const endpoint of endpoints) expect((await check('4', { endpoint })).status).toBe(429);
  });

  it('records nothing on a refusal or a look', async () => {
    const { check, status, store } = rateApp({ limit: 1 }, express);
    expect((await status('42', '/search')).body).toMatchObject({ used: 0, remaining: 1, reset: NOON_SEC });
    expect(store.size).toBe(0);
    await check('42', SEARCH);
    const before = JSON.stringify(store.inspect(userHash));
    expectProblem(await check('42', SEARCH), 429);
    await status('42', '/search');
    expect(JSON.stringify(store.inspect(userHash))).toBe(before);
  });

  it('checks the key before the path, the user before the body', async () => {
    const { app, check, reset } = rateApp({}, express);
    expectProblem(await reset('abc', {}), 403);
    expectProblem(await reset('abc'), 404);
    expectProblem(await reset('42?endpoint=', {}), 403);
    expectProblem(await reset('abc?endpoint='), 404);
    expectProblem(await reset('42?endpoint='), 422);
    expectProblem(await check('0', '{'), 400);
    expect((await check('0', '{')).body.detail).toMatch(/X-User-Id/);
    expectProblem(await supertest(app).get('/rate/status').set('X-User-Id', 'abc'), 400);
    for (const id of ['0', '-1', '007', 'abc', '1e3', '1 2', '1,2', '1.5']) {
      expectProblem(await check(id, SEARCH), 400);
      expectProblem(await supertest(app).get('/rate/status?endpoint=a').set('X-User-Id', id), 400);
    }
    expect((await check('12345678901234567890', SEARCH)).status).toBe(200);
  });

  it('asks services for their key where one is set', async () => {
    const serviceKey = 'the key of the shops';
    const { app, check, reset } = rateApp({ serviceKey }, express);
    expectProblem(await check('abc', '{'), 403);
    expectProblem(await check('42', SEARCH, { 'X-Service-Key': 'the key of the thieves' }), 403);
    expectProblem(await supertest(app).get('/rate/status?endpoint=a').set('X-User-Id', '42'), 403);
    expect((await check('42', SEARCH, { 'X-Service-Key': serviceKey })).status).toBe(200);
    expect((await check('42', SEARCH, { Authorization: `Bearer ${serviceKey}` })).status).toBe(200);
    expectProblem(await reset('42', { 'X-Service-Key': serviceKey }), 403);
    expect((await reset('42')).status).toBe(200);
    for (const empty of ['', []]) {
      expectProblem(
        await rateApp({ serviceKey: empty }, express).check('42', SEARCH, { 'X-Service-Key': '' }),
        403,
      );
    }
  });

  it('answers 405 to other methods and leaves other paths to the application', async () => {
    const { app } = rateApp({}, express);
    app.use((_req, res) => {
      res.status(418).end();
    });
    for (const [method, path, allow] of [
      ['get', '/rate/check', 'POST'],
      ['post', '/rate/status', 'GET'],
    ] as const) {
      const reply = await supertest(app)[method](path).set('X-User-Id', '42');
      expectProblem(reply, 405);
      expect(reply.headers['allow']).toBe(allow);
    }
    expectProblem(await supertest(app).get('/rate/reset/42'), 403);
    expect((await supertest(app).get('/rate/reset/42').set(asAdmin)).headers['allow']).toBe('DELETE');
    for (const path of ['/', '/rate', '/rate/checks', '/rates/check']) {
      expect((await supertest(app).get(path)).status).toBe(418);
    }
  });
});

describe('DELETE /rate/reset/:userId', () => {
  it('forgets all endpoints of the user and nobody else, with 10,000 others present', async () => {
    const store = new MemoryStore();
    const { app, check, status, reset } = rateApp({ store });
    const other = createLimiter({ scope: 'other', limit: 5, windowSec: 60, store });
    await other.consume('42');
    for (const endpoint of ['/a', '/b', '/c']) await check('42', { endpoint });
    for (let i = 0; i < 10_000; i += 1) {
      consumeAs(store, String(100_000 + i));
    }
    await check('4', { endpoint: '/a' });
    await check('422', { endpoint: '/a' });
    expect((await reset('42')).body).toEqual({ userId: '42', reset: 3 });
    for (const endpoint of ['/a', '/b', '/c']) expect((await status('42', endpoint)).body.used).toBe(0);
    expect((await other.peek('42')).remaining).toBe(4);
    for (const user of ['4', '422', '100000', '104242', '109999']) {
      expect((await status(user, '/a')).body.used).toBe(1);
    }
    // 10,000 others, users 4 and 422, and the other limiter's 42.
    expect(store.size).toBe(10_003);
    expect((await reset('42')).body).toEqual({ userId: '42', reset: 0 });
    expect((await supertest(app).delete('/rate/reset/4').set(asAdmin)).body).toEqual({
      userId: '4',
      reset: 1,
    });
  });

  it('forgets one endpoint where one is named', async () => {
    const { check, status, reset } = rateApp();
    for (const endpoint of ['/a?x=1&y', '/b']) await check('42', { endpoint });
    expect((await reset(`42?endpoint=${encodeURIComponent('/a?x=1&y')}`)).body).toEqual({
      userId: '42',
      reset: 1,
    });
    expect((await status('42', '/a?x=1&y')).body.used).toBe(0);
    expect((await status('42', '/b')).body.used).toBe(1);
  });
});

describe('a user with very many endpoints', () => {
  it('may have 1,000 with requests in the window, go on with those, and take new ones when they lapse', async () => {
    const { check, reset, clock, store } = rateApp({ limit: 2 });
    for (let i = 0; i < 1000; i += 1) consumeAs(store, '42', String(i));
    const refused = await check('42', { endpoint: 'one more' });
    expectProblem(refused, 422);
    expect(refused.body.errors).toEqual([{ field: 'endpoint' }]);
    // Nothing of it is left: it would count against him when there is room again.
    expect(store.size).toBe(1000);
    expect((await check('42', { endpoint: '999' })).body).toMatchObject({ used: 2 });
    expectProblem(await check('42', { endpoint: '999' }), 429);
    expect((await check('43', { endpoint: 'one more' })).status).toBe(200);
    await reset('42?endpoint=0');
    expect((await check('42', { endpoint: 'one more' })).status).toBe(200);
    expectProblem(await check('42', { endpoint: 'and another' }), 422);
    clock.advance(60_000);
    expect((await check('42', { endpoint: 'and another' })).body).toMatchObject({ used: 1 });
  });

  it('gets no further by asking for several at once', async () => {
    const inner = new MemoryStore();
    const store = new RemoteStore(inner, 1);
    const { check } = rateApp({ store });
    for (let i = 0; i < 999; i += 1) consumeAs(inner, '42', String(i));
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) => check('42', { endpoint: `new ${String(i)}` })),
    );
    const passed = replies.filter(({ status: code }) => code === 200).length;
    expect(passed).toBeLessThanOrEqual(1);
    expect(replies.every(({ status: code }) => code === 200 || code === 422)).toBe(true);
  });
});

describe('a store that fails', () => {
  it.each<[RateServiceOptions['failMode'], number, object]>([
    [undefined, 200, { allowed: true, degraded: true }],
    ['open', 200, { allowed: true, degraded: true }],
    ['closed', 503, { allowed: false }],
    ['local', 200, { allowed: true, used: 1 }],
  ])('is answered by failMode %s with %i', async (failMode, status, body) => {
    const store = new RemoteStore();
    store.behaviour = 'reject';
    const { check } = rateApp({ store, ...(failMode === undefined ? {} : { failMode }) });
    const reply = await check('42', SEARCH);
    expect([reply.status, reply.body]).toEqual([status, expect.objectContaining(body)]);
    expect(reply.headers['retry-after']).toBe(status === 503 ? '1' : undefined);
  });

  it('is 503 for a look and for a reset, and heard of by listeners', async () => {
    const store = new RemoteStore();
    store.behaviour = 'throw';
    const down: Store = Object.assign(Object.create(store) as Store, {
      inspect: () => Promise.reject(new Error('down')),
      reset: () => Promise.reject(new Error('down')),
    });
    const { router, status, reset } = rateApp({ store: down });
    const errors: string[] = [];
    const off = router.on('store-error', ({ error }) => errors.push(error.code));
    expectProblem(await status('42', '/search'), 503);
    expectProblem(await reset('42'), 503);
    expectProblem(await reset('42?endpoint=a'), 503);
    off();
    await status('42', '/search');
    expect(errors).toEqual(['ERR_LIMITKEEPER_STORE']);
  });

  it('does not undo a request that was counted when only the look at the endpoints fails', async () => {
    const inner = new MemoryStore();
    const store: Store = Object.assign(Object.create(inner) as Store, {
      decide: inner.decide.bind(inner),
      inspect: () => Promise.reject(new Error('down')),
    });
    expect((await rateApp({ store }).check('42', SEARCH)).body).toMatchObject({ allowed: true, used: 1 });
    expectProblem(await rateApp({ store, failMode: 'closed' }).check('43', SEARCH), 503);
  });
});

it.each<[RateServiceOptions, string, string]>([
  [{ limit: 1001 }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'limit'],
  [{ limit: 1.5 }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'limit'],
  [{ windowSec: 0 }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'windowSec'],
  [{ adminKey: 'short' }, 'ERR_LIMITKEEPER_WEAK_KEY', 'adminKey'],
  [{ serviceKey: 'short' }, 'ERR_LIMITKEEPER_WEAK_KEY', 'serviceKey'],
  [{ failMode: 'shut' as never }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'failMode'],
  [{ window: 60 } as never, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'window'],
  [{ store: {} as never }, 'ERR_LIMITKEEPER_STORE_CONTRACT', 'store'],
  [null as never, 'ERR_LIMITKEEPER_OPTION_TYPE', 'the options of rateRouter'],
])('refuses the options %j', (options, code, option) => {
  expect(() => rateRouter(options)).toThrow(expect.objectContaining({ code, option }));
});

it('needs no options, and then counts in the store of the process', async () => {
  const express = EXPRESSES[0]![1];
  const app = express();
  app.use('/internal', rateRouter());
  const check = () => supertest(app).post('/internal/rate/check').set('X-User-Id', '4711').send(SEARCH);
  expect((await check()).body).toMatchObject({ used: 1, limit: 10 });
  expect((await check()).body).toMatchObject({ used: 2 });
});
