import crypto from 'node:crypto';
import supertest from 'supertest';
import { adminRouter } from '../../src/admin/index.js';
import type { AdminOptions } from '../../src/admin/index.js';
import { isLimitkeeperError } from '../../src/index.js';
import {
  ADMIN_KEY,
  adminApp,
  adminAppOf,
  asAdmin,
  asReader,
  READ_KEY,
  ROUTES,
  twoLimiters,
  WRONG_KEY,
} from '../support/admin.js';
import type { AdminApp } from '../support/admin.js';

const ask = (
  { get, post }: AdminApp,
  { method, path, body }: (typeof ROUTES)[number],
  headers: Record<string, string>,
) => (method === 'get' ? get(path, headers) : post(path, body!, headers));

const expectProblem = (reply: supertest.Response, status: number): void => {
  expect(reply.status).toBe(status);
  expect(reply.headers['content-type']).toBe('application/problem+json');
  expect(reply.headers['cache-control']).toBe('no-store');
  expect(JSON.parse(reply.text)).toMatchObject({ status, detail: expect.any(String) });
};

describe.each(['4', '5'] as const)('with Express %s', major => {
  const appWith = adminAppOf(major);

  describe.each(ROUTES)('$method $path', route => {
    it('answers 403 without a key', async () => {
      expectProblem(await ask(appWith(), route, {}), 403);
    });

    it('answers 403 to a wrong key, in either header', async () => {
      expectProblem(await ask(appWith(), route, { 'X-Admin-Key': WRONG_KEY }), 403);
      expectProblem(await ask(appWith(), route, { Authorization: `Bearer ${WRONG_KEY}` }), 403);
    });

    it('opens to the right key, in either header', async () => {
      expect((await ask(appWith(), route, asAdmin)).status).toBe(200);
      expect((await ask(appWith(), route, { Authorization: `Bearer ${ADMIN_KEY}` })).status).toBe(200);
    });

    it(`${route.method === 'get' ? 'opens' : 'does not open'} to a read-only key`, async () => {
      const reply = await ask(appWith(), route, asReader);
      if (route.method === 'get') expect(reply.status).toBe(200);
      else expectProblem(reply, 403);
    });

    it.each([
      ['undefined', undefined],
      ['empty', ''],
      ['a list of none', []],
      ['a list of an empty one', ['']],
    ])('answers 403 to everybody when the key is %s', async (_, adminKey) => {
      for (const headers of [{}, asAdmin, asReader, { 'X-Admin-Key': '' }, { Authorization: 'Bearer ' }]) {
        expectProblem(await ask(appWith({ adminKey }), route, headers), 403);
      }
    });
  });

  it('shows the page without a key, and not when none is configured', async () => {
    expect((await appWith().get('/', {})).status).toBe(200);
    expect((await appWith().get('', {})).status).toBe(200);
    for (const adminKey of [undefined, '', [], ['']]) {
      expectProblem(await appWith({ adminKey }).get('/', asAdmin), 403);
    }
  });

  it('answers 405 with Allow to another method, once the key is right', async () => {
    const { app } = appWith();
    const put = await supertest(app).put('/admin/scopes').set(asAdmin);
    expectProblem(put, 405);
    expect(put.headers['allow']).toBe('GET');
    expectProblem(await supertest(app).put('/admin/scopes'), 403);
    expectProblem(await supertest(app).delete('/admin/status').set(asReader), 403);
  });

  it('answers every other path below the mount itself: 403 before it says that there is none', async () => {
    const { app, get, post } = appWith();
    app.use((_req, res) => {
      res.status(418).end();
    });
    for (const path of ['/elsewhere', '/scopes/api', '/scopes//', '/%2e%2e/scopes', '/__proto__']) {
      expectProblem(await get(path, {}), 403);
      expectProblem(await get(path, { 'X-Admin-Key': WRONG_KEY }), 403);
      expectProblem(await get(path), 404);
      expectProblem(await post(path, {}, asReader), 404);
      expectProblem(await appWith({ adminKey: '' }).get(path), 403);
    }
    expect((await supertest(app).get('/elsewhere')).status).toBe(418);
    expect((await supertest(app).get('/admins')).status).toBe(418);
  });

  it('tells a browser in a readable page that no key is configured, and nothing else', async () => {
    const browser = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
    for (const path of ['', '/', '/scopes', '/elsewhere']) {
      const { get } = appWith({ adminKey: '' });
      const reply = await get(path, { ...browser, ...asAdmin });
      expect([reply.status, reply.headers['content-type']]).toEqual([403, 'text/html; charset=utf-8']);
      expect(reply.headers['content-security-policy']).toMatch(/^default-src 'none'/);
      expect(reply.text.replace(/<title>.*<\/title>|<[^>]*>/g, '')).toBe(
        'Closed: no admin key is configured. Set the option adminKey to a secret of 16 characters or more.',
      );
      for (const accept of ['*/*', 'application/json', 'application/problem+json, text/html']) {
        expectProblem(await get(path, { Accept: accept }), 403);
      }
    }
  });
});

describe('keys', () => {
  it('are compared by timingSafeEqual over digests, each presented one with every one of ours', async () => {
    const { get } = adminApp({ adminKey: [ADMIN_KEY, 'the-key-of-last-month'], readKey: READ_KEY });
    const spy = jest.spyOn(crypto, 'timingSafeEqual');
    try {
      for (const headers of [
        asAdmin,
        asReader,
        { 'X-Admin-Key': WRONG_KEY },
        { Authorization: `Bearer ${ADMIN_KEY}` },
      ]) {
        spy.mockClear();
        await get('/scopes', headers);
        // Two admin keys and a read-only one, whichever of them was right.
        expect(spy).toHaveBeenCalledTimes(3);
        for (const [a, b] of spy.mock.calls) expect([a.byteLength, b.byteLength]).toEqual([32, 32]);
      }
    } finally {
      spy.mockRestore();
    }
  });

  it('may be several, so that one can be replaced', async () => {
    const { get } = adminApp({ adminKey: ['', 'the-key-of-last-month', 'the-key-of-this-month'] });
    expect((await get('/scopes', { 'X-Admin-Key': 'the-key-of-last-month' })).status).toBe(200);
    expect((await get('/scopes', { 'X-Admin-Key': 'the-key-of-this-month' })).status).toBe(200);
    expect((await get('/scopes', { 'X-Admin-Key': '' })).status).toBe(403);
  });

  it('open when one of two headers has them, for a proxy may need the other', async () => {
    const { get } = adminApp();
    const reply = await get('/scopes', { 'X-Admin-Key': ADMIN_KEY, Authorization: 'Bearer of.some.proxy' });
    expect(reply.status).toBe(200);
  });

  it.each<[string, Partial<AdminOptions>, string]>([
    ['15 characters', { adminKey: 'fifteen-letters' }, 'ERR_LIMITKEEPER_WEAK_KEY'],
    ['one short among long ones', { adminKey: [ADMIN_KEY, 'short'] }, 'ERR_LIMITKEEPER_WEAK_KEY'],
    ['a short read-only one', { readKey: 'short' }, 'ERR_LIMITKEEPER_WEAK_KEY'],
    ['a line break at its end, as files have', { adminKey: `${ADMIN_KEY}\n` }, 'ERR_LIMITKEEPER_WEAK_KEY'],
    ['letters that no header carries', { adminKey: 'schlüsselschlüssel' }, 'ERR_LIMITKEEPER_WEAK_KEY'],
    ['the admin key once more, to read', { readKey: ADMIN_KEY }, 'ERR_LIMITKEEPER_OPTION_RANGE'],
    ['a number', { adminKey: 1234567890123456 as never }, 'ERR_LIMITKEEPER_OPTION_TYPE'],
    ['null', { adminKey: null as never }, 'ERR_LIMITKEEPER_OPTION_TYPE'],
    ['a list with undefined', { adminKey: [undefined] as never }, 'ERR_LIMITKEEPER_OPTION_TYPE'],
  ])('that are %s are refused at construction, without being named', (_, options, code) => {
    let thrown: unknown;
    try {
      adminRouter({ limiters: twoLimiters(), adminKey: ADMIN_KEY, ...options });
    } catch (error) {
      thrown = error;
    }
    expect(isLimitkeeperError(thrown)).toBe(true);
    expect(thrown).toMatchObject({ code, option: Object.keys(options)[0] });
    for (const key of Object.values(options).flat()) {
      if (typeof key === 'string') expect((thrown as Error).message).not.toContain(key.trim());
    }
  });
});

describe('wrong keys', () => {
  it('are limited per address, and a right key passes all the same', async () => {
    const { app, get } = adminApp();
    app.set('trust proxy', 1);
    const from = (address: string, key: string) =>
      get('/scopes', { 'X-Admin-Key': key, 'X-Forwarded-For': address });
    for (let i = 0; i < 10; i += 1)
      expect((await from('203.0.113.7', `${WRONG_KEY} ${String(i)}`)).status).toBe(403);
    const limited = await from('203.0.113.7', WRONG_KEY);
    expectProblem(limited, 429);
    // Ten in a sliding minute: the eleventh fits when the first window is over and a tenth of it has faded.
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(limited.headers['retry-after'])).toBeLessThanOrEqual(66);
    expect((await from('203.0.113.7', ADMIN_KEY)).status).toBe(200);
    expect((await from('203.0.113.7', READ_KEY)).status).toBe(200);
    expect((await from('203.0.113.7', WRONG_KEY)).status).toBe(429);
    expect((await from('203.0.113.8', WRONG_KEY)).status).toBe(403);
    // Texts that are no address share one quota: each of them as a fresh one would be no limit.
    for (let i = 0; i < 10; i += 1) await from(`unknown-${String(i)}`, WRONG_KEY);
    expect((await from('unknown-x', WRONG_KEY)).status).toBe(429);
  });

  it('are not those of somebody who sends none: he guesses nothing', async () => {
    const { get } = adminApp();
    for (let i = 0; i < 15; i += 1) expect((await get('/scopes', {})).status).toBe(403);
    expect((await get('/scopes', { 'X-Admin-Key': WRONG_KEY })).status).toBe(403);
  });
});

describe('authorize', () => {
  const byCookie = (answer: unknown): Partial<AdminOptions> => ({
    adminKey: undefined,
    readKey: undefined,
    authorize: (async (req: { headers: { cookie?: string } }) =>
      req.headers.cookie === 'session=1' && answer) as never,
  });
  const session = { Cookie: 'session=1' };

  it('takes the place of keys', async () => {
    const { get, post } = adminApp({ ...byCookie(true), adminKey: ADMIN_KEY });
    expect((await get('/', {})).status).toBe(200);
    expect((await get('/scopes', session)).status).toBe(200);
    expect((await post('/reset', { subject: { parts: ['a'] } }, session)).status).toBe(200);
    expectProblem(await get('/scopes', asAdmin), 403);
  });

  it("opens GET routes where it answers 'read'", async () => {
    const { get, post } = adminApp(byCookie('read'));
    expect((await get('/scopes', session)).status).toBe(200);
    expectProblem(await post('/reset', { subject: { parts: ['a'] } }, session), 403);
  });

  it.each([[1], ['yes'], [{}], [undefined], ['all']])('opens nothing where it answers %p', async answer => {
    expectProblem(await adminApp(byCookie(answer)).get('/scopes', session), 403);
  });

  it('hands its errors to the application, and opens nothing', async () => {
    const { app, get } = adminApp({
      authorize: () => {
        throw new Error('the session store is away');
      },
    });
    app.use(((
      error: Error,
      _req: unknown,
      res: { status(n: number): { send(t: string): void } },
      _next: unknown,
    ) => {
      res.status(500).send(error.message);
    }) as never);
    const reply = await get('/scopes', session);
    expect([reply.status, reply.text]).toEqual([500, 'the session store is away']);
  });

  it('is limited where it says no', async () => {
    const { get } = adminApp(byCookie(true));
    for (let i = 0; i < 10; i += 1) expectProblem(await get('/scopes', {}), 403);
    expectProblem(await get('/scopes', {}), 429);
    expect((await get('/scopes', session)).status).toBe(200);
  });
});
