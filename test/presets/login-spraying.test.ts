import { loginLimits } from 'limitkeeper/presets';
import { EXPRESSES, tally, times } from '../support/http.js';
import { loginApp, RIGHT } from '../support/login.js';
import type { LoginApp } from '../support/login.js';
import { expectMistake } from '../support/mistakes.js';

jest.setTimeout(60_000);

let app: LoginApp;

afterEach(() => app.close());

const STEP = '/login/password';
const body = (email: unknown, password = 'Summer2024!'): object => ({ email, password });

describe.each(EXPRESSES)('S5 spraying the password step of a login in two, with %s', (_name, express) => {
  test('3,000 accounts, one password, one address: 25 are checked', async () => {
    app = await loginApp({}, { express });
    const statuses: number[] = [];
    for (let i = 0; i < 3000; i += 50) {
      const fifty = Array.from({ length: 50 }, (_, n) => app.post(STEP, body(`user${String(i + n)}@x.y`)));
      for (const { status } of await Promise.all(fifty)) statuses.push(status);
    }
    expect(app.checked).toHaveLength(25);
    expect(statuses.filter(status => status === 401)).toHaveLength(25);
    expect(statuses.filter(status => status === 429)).toHaveLength(2975);
  });

  test('the block lasts 300 s, or as long as the window is used up; another address goes on', async () => {
    app = await loginApp({}, { express });
    for (let i = 0; i < 25; i += 1) await app.post(STEP, body(`user${String(i)}@x.y`));
    const refused = await app.post(STEP, body('late@x.y', RIGHT));
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '600']);
    expect((await app.post(STEP, body('late@x.y', RIGHT), '203.0.113.9')).status).toBe(200);
    app.clock.advance(600_000);
    expect((await app.post(STEP, body('late@x.y', RIGHT))).status).toBe(200);
  });
});

test('S5 no success forgives the address, be it of an own account between any two guesses', async () => {
  app = await loginApp();
  for (let i = 0; i < 60; i += 1) {
    await app.post(STEP, body(`user${String(i)}@x.y`));
    await app.post(STEP, body('mallory@x.y', RIGHT));
  }
  expect(app.checked.filter(name => name !== 'mallory@x.y')).toHaveLength(25);
});

test('S5 successes use up nothing', async () => {
  app = await loginApp();
  const replies = [];
  for (let i = 0; i < 40; i += 1) replies.push((await app.post(STEP, body('user@x.y', RIGHT))).status);
  expect(replies).toEqual(times(40, 200));
});

test('S5 its numbers can be changed, and its scope is told', async () => {
  app = await loginApp({ passwordIp: { limit: 2, windowSec: 60, blockSec: 90 } });
  const policy = (await app.post(STEP, body('a@x.y'))).headers['ratelimit-policy'];
  expect(policy).toBe('"login.password.ip";q=2;w=60, "login.password.email_ip";q=5;w=900');
  await app.post(STEP, body('b@x.y'));
  expect((await app.post(STEP, body('c@x.y'))).headers['retry-after']).toBe('90');
  expect(app.limits.password.limiter.scopes).toEqual(['login.password.ip', 'login.password.email_ip']);
  expect(app.limits.limiter.scopes).toEqual(['login.resolve.ip', 'login.password.email_ip']);
});

describe.each(['/login', STEP])('S5 at %s, turned on', path => {
  test('dailyIp: 100 failures of one address block it for a day, whatever the other rules have forgotten', async () => {
    app = await loginApp({ dailyIp: true });
    for (let i = 0; i < 150; i += 1) {
      await app.post(path, body(`user${String(i)}@x.y`));
      await app.post('/login/password', body('mallory@x.y', RIGHT));
      if (i % 10 === 9) app.clock.advance(600_000);
    }
    expect(app.checked.filter(name => name !== 'mallory@x.y')).toHaveLength(100);
    const refused = await app.post(path, body('late@x.y', RIGHT));
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(70_000);
    app.clock.advance(86_400_000);
    expect((await app.post(path, body('late@x.y', RIGHT))).status).toBe(200);
  });

  test('account: after 20 failures from everywhere a captcha stands before one account, and no other', async () => {
    app = await loginApp({
      account: true,
      onLimited: (req, res, next) => {
        if ((req.body as { captcha?: string }).captcha === 'solved') next();
        else res.json({ captcha: true });
      },
    });
    const victim = 'victim@x.y';
    const from = (i: number): string => `203.0.113.${String(i)}`;
    const guesses = [];
    for (let i = 0; i < 30; i += 1) guesses.push((await app.post(path, body(victim), from(i))).status);
    expect(guesses).toEqual([...times(20, 401), ...times(10, 429)]);
    // The owner has a way in, and so has everybody else.
    expect((await app.post(path, body(victim, RIGHT), from(99))).status).toBe(429);
    expect((await app.post(path, { ...body(victim, RIGHT), captcha: 'solved' }, from(99))).status).toBe(200);
    expect((await app.post(path, body('other@x.y', RIGHT), from(98))).status).toBe(200);
    // The owner's own success says nothing of the others' guesses.
    expect((await app.post(path, body(victim), from(97))).status).toBe(429);
    app.clock.advance(3_600_000);
    expect((await app.post(path, body(victim), from(97))).status).toBe(401);
  });

  test('account: a request that names none is no part of it', async () => {
    app = await loginApp({ account: { limit: 2 }, onLimited: (_req, res) => void res.json({}) });
    for (let i = 0; i < 3; i += 1) {
      const { status, headers } = await app.post(path, { password: 'x' }, `203.0.113.${String(i)}`);
      expect([status, String(headers['ratelimit-policy']).includes('login.password.email"')]).toEqual([
        401,
        false,
      ]);
    }
  });

  // Where a driver or a query finds the account all the same: `['victim']` in MySQL, `{ $eq: 'victim' }` in MongoDB, a number.
  test.each<[string, (i: number) => unknown]>([
    ['a list', () => ['victim@x.y']],
    ['lists of any length', i => Array.from({ length: 1 + i }, () => 'victim@x.y')],
    ['an object', () => ({ $eq: 'victim@x.y' })],
    ['a number', () => 4_917_000],
    ['all of these in turn', i => [['victim@x.y'], { $in: ['victim@x.y'] }, 7, true][i % 4]],
  ])('account: %s as the name is no way around it', async (_name, email) => {
    app = await loginApp({ account: true, onLimited: (_req, res) => void res.json({}) });
    const seen = [];
    for (let i = 0; i < 22; i += 1)
      seen.push((await app.post(path, { email: email(i), password: 'x' }, `203.0.113.${String(i)}`)).status);
    expect(seen).toEqual([...times(20, 401), 429, 429]);
    expect((await app.post(path, body('[Unreadable]', RIGHT), '203.0.113.99')).status).toBe(200);
  });

  test('account: a key of one’s own applies without an e-mail, too', async () => {
    app = await loginApp({
      account: { limit: 2, keyFn: req => (req.body as { user: string }).user },
      onLimited: (_req, res) => void res.json({}),
    });
    const seen = [];
    for (let i = 0; i < 3; i += 1)
      seen.push((await app.post(path, { user: 'u' }, `203.0.113.${String(i)}`)).status);
    expect(seen).toEqual([401, 401, 429]);
  });
});

test('S5 a hundred parallel guesses at as many accounts: 25 are checked', async () => {
  app = await loginApp();
  const all = await Promise.all(
    Array.from({ length: 100 }, (_, i) => app.post(STEP, body(`user${String(i)}@x.y`))),
  );
  expect(tally(all.map(answer => ({ ...answer, statusText: '', body: answer.text })))).toEqual({
    401: 25,
    429: 75,
  });
  expect(app.checked).toHaveLength(25);
});

describe('S5 mistakes', () => {
  beforeEach(async () => {
    app = await loginApp();
  });

  test.each<[object, string, string]>([
    [{ account: true }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'onLimited'],
    [{ account: { limit: 5 } }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'onLimited'],
    [{ account: 'yes', onLimited: () => undefined }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'account'],
    [{ account: { limit: -1 }, onLimited: () => undefined }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'account.limit'],
    [{ dailyIp: 100 }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'dailyIp'],
    [{ dailyIp: { windowSec: 0 } }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'dailyIp.windowSec'],
    [{ passwordIp: { limit: 2.5 } }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'passwordIp.limit'],
    [{ passwordIp: false }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'passwordIp'],
    [{ passwordIp: { scope: 'login.password.email_ip' } }, 'ERR_LIMITKEEPER_DUPLICATE_SCOPE', 'scope'],
  ])('%j', (options, code, option) => {
    expectMistake(() => loginLimits(options), code, option);
  });

  test('an account rule on trial refuses nobody and needs no onLimited', () => {
    expect(loginLimits({ account: { mode: 'shadow' } }).limiter.scopes).toContain('login.password.email');
    expect(loginLimits({ account: false, dailyIp: false }).limiter.scopes).toHaveLength(2);
  });
});
