import express5 from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { byStatus, MemoryStore, subjectHash } from 'limitkeeper';
import { loginLimits, TOO_MANY_LOGIN_ATTEMPTS } from 'limitkeeper/presets';
import type { LoginLimitsHandler, LoginLimitsOptions } from 'limitkeeper/presets';
import { DownStore } from '../support/down-store.js';
import { EXPRESSES } from '../support/http.js';
import { expectMistake } from '../support/mistakes.js';
import { serve } from '../support/served.js';
import type { Answer, Served } from '../support/served.js';

jest.setTimeout(60_000);

const START = 1_750_000_000_000;
const SEC = 1000;
const RIGHT = 'correct horse';

let now: number;
let store: MemoryStore;
let served: Served;
/** Logins that came as far as the password. */
let reached: number;
let limits: LoginLimitsHandler;

beforeEach(() => {
  now = START;
  store = new MemoryStore({ clock: { now: () => now } });
  reached = 0;
});

afterEach(async () => {
  await served.close();
});

interface Setup {
  readonly express?: typeof express5;
  readonly parser?: boolean;
  /** How long the password takes: until this resolves. */
  readonly until?: Promise<void>;
}

/** Only `user@example.com` has an account; the right password of everybody is RIGHT, so that any spelling gets in. */
async function start(
  options: LoginLimitsOptions = {},
  { express = express5, parser = true, until }: Setup = {},
): Promise<void> {
  const app = express();
  app.set('trust proxy', 1);
  if (parser) app.use(express.json());
  limits = loginLimits({ store, ...options });
  const login: RequestHandler = (req, res) => {
    reached += 1;
    const { password } = (req.body ?? {}) as { password?: unknown };
    const reply = (): void => {
      if (password === RIGHT) res.json({ welcome: true });
      else res.status(401).json({ error: 'invalid_credentials' });
    };
    if (until === undefined) reply();
    else void until.then(reply);
  };
  app.all('/login', limits, login);
  app.post('/login/email', limits.resolve, (_req, res) => {
    res.json({ next: 'password' });
  });
  app.post('/login/password', limits.password, login);
  app.use((error: Error, _req: Request, res: Response, _next: unknown) => {
    res.status(500).json({ code: (error as { code?: string }).code });
  });
  served = await serve(app);
}

interface Try {
  readonly password?: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly address?: string;
}

const body = (
  json: unknown,
  { path = '/login', method = 'POST', headers, address }: Try = {},
): Promise<Answer> =>
  served.ask(path, {
    json,
    method,
    headers: { 'x-forwarded-for': address ?? '198.51.100.7', ...headers },
  });

const wrong = (email = 'user@example.com', other: Try = {}): Promise<Answer> =>
  body({ email, password: other.password ?? 'wrong' }, other);

const right = (email = 'user@example.com', other: Try = {}): Promise<Answer> =>
  wrong(email, { ...other, password: RIGHT });

async function statuses(...asks: (() => Promise<Answer>)[]): Promise<number[]> {
  const seen: number[] = [];
  for (const ask of asks) seen.push((await ask()).status);
  return seen;
}

const times = (count: number, ask: (i: number) => Promise<Answer>): (() => Promise<Answer>)[] =>
  Array.from({ length: count }, (_, i) => () => ask(i));

const few401 = (count: number): number[] => new Array<number>(count).fill(401);

/** Sends all at once; those that are let in get their answer when `waiting` others have got theirs. */
async function allAtOnce(
  options: LoginLimitsOptions,
  count: number,
  waiting: number,
  ask: () => Promise<Answer>,
): Promise<Answer[]> {
  let release = (): void => {};
  const until = new Promise<void>(resolve => (release = resolve));
  await start(options, { until });
  let answered = 0;
  const all = times(count, () => ask()).map(async asked => {
    const answer = await asked();
    answered += 1;
    if (answered === waiting) release();
    return answer;
  });
  if (waiting === 0) {
    while (reached < count) await new Promise(resolve => setTimeout(resolve, 5));
    release();
  }
  return Promise.all(all);
}

describe.each(EXPRESSES)('with %s', (_name, express) => {
  test('five wrong passwords in 900 s block the e-mail at this address for 900 s, the right one included', async () => {
    await start({}, { express });
    expect(await statuses(...times(4, () => wrong()))).toEqual(few401(4));
    const fifth = await wrong();
    expect(fifth.status).toBe(401);
    expect(fifth.headers).toMatchObject({ 'retry-after': '900', 'x-ratelimit-remaining': '0' });

    now += 100 * SEC;
    const sixth = await right();
    expect(sixth.status).toBe(429);
    expect(sixth.text).toBe('{"error":"rate_limit_exceeded"}');
    expect(sixth.headers['retry-after']).toBe('800');
    expect(reached).toBe(5);

    now += 800 * SEC - 1;
    expect((await right()).status).toBe(429);
    now += 1;
    expect((await right()).status).toBe(200);
  });

  test('without a body parser the address alone counts, and nothing crashes', async () => {
    await start({}, { express, parser: false });
    expect(await statuses(...times(6, i => wrong(`user${String(i)}@example.com`)))).toEqual([
      ...few401(5),
      429,
    ]);
    expect((await wrong('user@example.com', { address: '203.0.113.9' })).status).toBe(401);
  });
});

test('a refusal as a problem says what people are to do', async () => {
  await start();
  await statuses(...times(5, () => wrong()));
  const { text, headers } = await wrong('user@example.com', {
    headers: { accept: 'application/problem+json' },
  });
  expect(headers['content-type']).toBe('application/problem+json');
  expect(JSON.parse(text)).toMatchObject({
    status: 429,
    detail: 'Too many login attempts. Please wait and try again.',
    'violated-policies': ['login.password.email_ip'],
  });
  expect(TOO_MANY_LOGIN_ATTEMPTS).toBe('Too many login attempts. Please wait and try again.');
});

test('nothing tells whether an account exists', async () => {
  await start();
  const seen = async (email: string): Promise<unknown[]> => {
    const answers: unknown[] = [];
    for (let i = 0; i < 7; i += 1) {
      const { status, text, headers } = await wrong(email, { address: `198.51.100.${String(email.length)}` });
      const { date: _date, ...others } = headers;
      answers.push({ status, text, others });
    }
    return answers;
  };
  expect(await seen('nobody@example.com')).toEqual(await seen('user@example.com'));
});

test('a success forgives the e-mail at this address', async () => {
  await start();
  expect(await statuses(...times(4, () => wrong()), () => right(), ...times(6, () => wrong()))).toEqual([
    ...few401(4),
    200,
    ...few401(5),
    429,
  ]);
});

test('of a hundred parallel wrong passwords five reach the handler', async () => {
  const all = await allAtOnce({}, 100, 95, wrong);
  expect(all.filter(({ status }) => status === 401)).toHaveLength(5);
  expect(all.filter(({ status }) => status === 429)).toHaveLength(95);
  expect(reached).toBe(5);
  expect((await wrong()).status).toBe(429);
});

test('fifty parallel good logins start no block', async () => {
  const all = await allAtOnce({}, 50, 45, right);
  const refused = all.filter(({ status }) => status === 429);
  expect(refused).toHaveLength(45);
  expect(new Set(refused.map(({ headers }) => headers['retry-after']))).toEqual(new Set(['1']));
  // The five that passed are all that the address has used, too.
  expect((await right()).headers['ratelimit']).toContain('"login.resolve.ip";r=19');
});

test('strict: false lets all of them pass', async () => {
  const all = await allAtOnce({ password: { strict: false }, resolve: { limit: 1000 } }, 50, 0, right);
  expect(all.filter(({ status }) => status === 200)).toHaveLength(50);
});

describe('the e-mail', () => {
  test.each<[string, string, boolean]>([
    ['another case', 'USER@Example.COM', true],
    ['space around', '  user@example.com\t', true],
    ['full width', 'ｕser@example.com', true],
    ['accents, which many databases ignore', 'üsér@example.com', true],
    ['combining accents', 'user\u0301@example.com', true],
    ['an invisible character', 'us\u200ber@example.com', true],
    ['another mailbox', 'user2@example.com', false],
    ['another mailbox by a dot', 'us.er@example.com', false],
  ])('with %s: is it the same mailbox?', async (_name, spelling, same) => {
    await start();
    await statuses(...times(5, () => wrong()));
    expect((await wrong(spelling)).status).toBe(same ? 429 : 401);
  });

  test.each(['straße@example.com', 'STRASSE@example.com', 'ﬁsh@example.com', 'ı@example.com'])(
    '%s is stored under its folded form, which an operator can compute',
    async spelling => {
      await start();
      await wrong(spelling);
      const folded = { s: 'strasse', S: 'strasse', ﬁ: 'fish', ı: 'i' }[spelling[0]!]!;
      const cells = store.inspect(subjectHash([`${folded}@example.com`, '198.51.100.7']));
      expect(cells.map(({ scope }) => scope)).toEqual(['login.password.email_ip']);
    },
  );

  test('counts for each address apart, and an address for each e-mail', async () => {
    await start();
    await statuses(...times(5, () => wrong()));
    expect((await right('user@example.com', { address: '203.0.113.9' })).status).toBe(200);
    expect((await right('other@example.com')).status).toBe(200);
    expect((await right()).status).toBe(429);
  });

  // Each of these is a way to send a guess for somebody whose e-mail the counter would not see.
  test.each<[string, (i: number) => unknown]>([
    ['no e-mail', () => ({ password: 'wrong' })],
    ['an empty one', i => ({ email: ' '.repeat(i), password: 'wrong' })],
    ['only invisible characters', () => ({ email: '\u200b\u0301', password: 'wrong' })],
    ['a list', i => ({ email: ['user@example.com', i], password: 'wrong' })],
    ['an object', i => ({ email: { toString: i }, password: 'wrong' })],
    ['a number', i => ({ email: i, password: 'wrong' })],
    ['null', () => ({ email: null, password: 'wrong' })],
    ['a body that is a list', i => [i]],
  ])('where there is %s, the address alone counts', async (_name, json) => {
    await start();
    expect(await statuses(...times(6, i => body(json(i))))).toEqual([...few401(5), 429]);
    expect((await body(json(0), { address: '203.0.113.9' })).status).toBe(401);
    expect((await right()).status).toBe(200);
  });

  test('without one nothing is forgiven: no account of his own clears the address of an attacker', async () => {
    await start();
    const ownAccount = (): Promise<Answer> => body({ user: 'mallory', password: RIGHT });
    const guess = (): Promise<Answer> => body({ user: 'victim', password: 'wrong' });
    expect(await statuses(...times(4, guess), ownAccount, guess, guess)).toEqual([
      ...few401(4),
      200,
      401,
      429,
    ]);
  });

  test('is read by the option email', async () => {
    await start({ email: req => (req.body as { user?: unknown }).user });
    const guess = (user: string): Promise<Answer> => body({ user, password: 'wrong' });
    expect(
      await statuses(
        ...times(5, () => guess('Victim')),
        () => guess('victim'),
        () => guess('other'),
      ),
    ).toEqual([...few401(5), 429, 401]);
    expect((await body({ user: 'other', password: RIGHT })).status).toBe(200);
  });

  test('as a promise is an error to next, and the password is not looked at', async () => {
    await start({ email: req => Promise.resolve((req.body as { email: string }).email) });
    const { status, text } = await wrong();
    expect([status, JSON.parse(text)]).toEqual([500, { code: 'ERR_LIMITKEEPER_CALLBACK' }]);
    expect(reached).toBe(0);
  });

  test.each<[string, object, (body: { email?: string }) => void, number[]]>([
    [
      'a success forgives, though the handler took the e-mail away',
      { email: 'user@example.com' },
      body => delete body.email,
      [401, 200, 401, 401, 429],
    ],
    [
      'a request without an e-mail forgives nothing, though the handler filled one in',
      {},
      body => (body.email = 'user@example.com'),
      [401, 200, 401, 429, 429],
    ],
  ])('is the one that the request came with: %s', async (_name, sent, change, expected) => {
    const app = express5();
    app.set('trust proxy', 1);
    app.use(express5.json());
    app.post('/login', loginLimits({ store, password: { limit: 2 } }), (req, res) => {
      const { password } = req.body as { password: string };
      change(req.body as { email?: string });
      res.status(password === RIGHT ? 200 : 401).end();
    });
    served = await serve(app);
    const passwords = ['wrong', RIGHT, 'wrong', 'wrong', 'wrong'];
    expect(await statuses(...passwords.map(password => () => body({ ...sent, password })))).toEqual(expected);
  });
});

test.each(['GET', 'HEAD', 'DELETE', 'PROPFIND', 'REPORT'])(
  'a page shown, or a login ended, by %s forgives nothing',
  async method => {
    await start();
    await statuses(...times(4, () => wrong()));
    expect((await right('user@example.com', { method })).status).toBe(200);
    expect(
      await statuses(
        () => wrong(),
        () => wrong(),
      ),
    ).toEqual([401, 429]);
  },
);

describe('the address', () => {
  test('has 25 logins in 600 s, whatever comes of them, then a block of 300 s', async () => {
    await start();
    const logins = times(25, i => (i % 2 === 0 ? right : wrong)(`user${String(i)}@example.com`));
    expect(new Set(await statuses(...logins))).toEqual(new Set([200, 401]));

    // At 400 s the block begins and lasts till 700; the window ends at 600.
    now += 400 * SEC;
    const refused = await right('late@example.com');
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '300']);
    expect((await right('late@example.com', { address: '203.0.113.9' })).status).toBe(200);
    now += 300 * SEC - 1;
    expect((await right('late@example.com')).status).toBe(429);
    now += 1;
    expect((await right('late@example.com')).status).toBe(200);
  });

  test('is told to wait for the window where that lasts longer than the block', async () => {
    await start();
    await statuses(...times(25, i => wrong(`user${String(i)}@example.com`)));
    now += 10 * SEC;
    expect((await wrong('late@example.com')).headers['retry-after']).toBe('590');
    now += 590 * SEC;
    expect((await wrong('late@example.com')).status).toBe(401);
  });
});

describe('a login in two steps', () => {
  const step1 = (i = 0, address?: string): Promise<Answer> =>
    body(
      { email: `user${String(i)}@example.com` },
      { path: '/login/email', ...(address ? { address } : {}) },
    );
  const step2 = (): Promise<Answer> => wrong('user@example.com', { path: '/login/password' });

  test('the first counts every e-mail asked for, the second wrong passwords only', async () => {
    await start();
    expect(await statuses(...times(26, i => step1(i)))).toEqual([...new Array<number>(25).fill(200), 429]);
    expect(await statuses(...times(6, step2))).toEqual([...few401(5), 429]);
    expect((await step2()).headers['retry-after']).toBe('900');
  });

  test('counts together with a login of one step', async () => {
    await start();
    expect(
      await statuses(
        () => wrong(),
        ...times(4, step2),
        () => wrong(),
        step2,
      ),
    ).toEqual([...few401(5), 429, 429]);
    // One login and 24 e-mails.
    expect(await statuses(...times(25, i => step1(i)))).toEqual([...new Array<number>(24).fill(200), 429]);
  });

  test('each step has a limiter that operators can use', async () => {
    await start();
    await statuses(...times(5, step2));
    await limits.password.limiter.unblock(['user@example.com', '198.51.100.7']);
    await limits.password.limiter.reset(['user@example.com', '198.51.100.7']);
    expect((await step2()).status).toBe(401);
    expect(limits.limiter.scopes).toEqual(['login.resolve.ip', 'login.password.email_ip']);
    expect(limits.resolve.limiter.scopes).toEqual(['login.resolve.ip']);
  });
});

describe('options', () => {
  test('override every number', async () => {
    await start({
      resolve: { limit: 3, windowSec: 60, blockSec: 70 },
      password: { limit: 2, windowSec: 30, blockSec: 40 },
    });
    expect(await statuses(...times(2, () => wrong()))).toEqual([401, 401]);
    expect((await wrong()).headers).toMatchObject({
      'retry-after': '40',
      'ratelimit-policy': '"login.resolve.ip";q=3;w=60, "login.password.email_ip";q=2;w=30',
    });
    expect((await right('other@example.com')).status).toBe(200);
    expect((await right('other@example.com')).headers['retry-after']).toBe('70');
    expect((await body({}, { path: '/login/email' })).headers['ratelimit-policy']).toBe(
      '"login.resolve.ip";q=3;w=60',
    );
  });

  test('a key of your own takes the place of e-mail and address', async () => {
    await start({ password: { limit: 1, keyFn: req => req.get('x-account') ?? 'none' } });
    const as = (account: string, ask: typeof wrong): Promise<Answer> =>
      ask(undefined, { headers: { 'x-account': account } });
    expect(
      await statuses(
        () => as('a', wrong),
        () => as('a', wrong),
        () => as('b', right),
        () => as('b', wrong),
      ),
    ).toEqual([401, 429, 200, 401]);
    expect(store.inspect(subjectHash('a')).map(({ scope }) => scope)).toEqual(['login.password.email_ip']);
  });

  test('a key of your own is forgiven without an e-mail', async () => {
    await start({ password: { limit: 2, keyFn: req => req.get('x-account') ?? 'none' } });
    const as = (password: string): Promise<Answer> => body({ password }, { headers: { 'x-account': 'a' } });
    expect(
      await statuses(...['wrong', RIGHT, 'wrong', 'wrong', 'wrong'].map(password => () => as(password))),
    ).toEqual([401, 200, 401, 401, 429]);
  });

  test('outcome tells a login that answers 200 to both', async () => {
    await start({
      password: { limit: 2 },
      outcome: (req, res) => {
        const { password } = req.body as { password: string };
        if (res.statusCode === 500) return byStatus(req, res);
        return password === 'maybe' ? 'success' : 'ignore';
      },
    });
    expect(await statuses(...times(4, () => wrong()), () => wrong(undefined, { password: 'maybe' }))).toEqual(
      few401(5),
    );
  });

  test('message takes the place of the text', async () => {
    await start({ message: 'Bitte warten.', password: { limit: 1 } });
    await wrong();
    const refused = await wrong(undefined, { headers: { accept: 'application/problem+json' } });
    expect((JSON.parse(refused.text) as { detail: string }).detail).toBe('Bitte warten.');
  });

  test('onLimited answers in place of the 429, in every step', async () => {
    await start({
      password: { limit: 1 },
      resolve: { limit: 1 },
      onLimited: (_req, res) => {
        res.json({ captcha: true });
      },
    });
    await wrong();
    for (const path of ['/login', '/login/email', '/login/password']) {
      const { status, text } = await wrong(undefined, { path });
      expect([path, status, text]).toEqual([path, 429, '{"captcha":true}']);
    }
  });
});

describe('when the store fails', () => {
  test('this process counts on by itself', async () => {
    await start({ store: new DownStore() });
    expect(await statuses(...times(6, () => wrong()))).toEqual([...few401(5), 429]);
    await served.close();
    await start({ store: new DownStore() });
    expect(await statuses(...times(4, () => wrong()), () => right(), ...times(2, () => wrong()))).toEqual([
      ...few401(4),
      200,
      401,
      401,
    ]);
  });

  test.each([
    ['open', 401],
    ['closed', 503],
  ] as const)('unless failMode is %s', async (failMode, status) => {
    await start({ store: new DownStore(), failMode });
    expect(await statuses(...times(7, () => wrong()))).toEqual(new Array(7).fill(status));
  });
});

describe('a mistake in the options is thrown, and names what the user wrote', () => {
  beforeEach(() => start());

  test.each<[object, string, string]>([
    [{ limit: 3 }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'limit'],
    [{ passwords: {} }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'passwords'],
    [{ password: { window: 3 } }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'window'],
    [{ password: { count: 'all' } }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'count'],
    [{ resolve: { strict: false } }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'strict'],
    [{ resolve: { limit: 2.5 } }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'resolve.limit'],
    [{ password: { blockSec: [60, -1] } }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'password.blockSec[1]'],
    [{ password: { algorithm: 'fixed' } }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'password.algorithm'],
    [{ password: { keyFn: 'email' } }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'password.keyFn'],
    [{ password: true }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'password'],
    [{ email: 'user' }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'email'],
    [{ outcome: 'byStatus' }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'outcome'],
    [{ message: 5 }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'message'],
    [{ failMode: 'no' }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'failMode'],
    [{ resolve: { scope: 'login.password.email_ip' } }, 'ERR_LIMITKEEPER_DUPLICATE_SCOPE', 'scope'],
  ])('%j', (options, code, option) => {
    expectMistake(() => loginLimits(options), code, option);
  });
});
