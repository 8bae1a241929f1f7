// Every snippet of docs/login.md is run as it stands there.
import express from 'express';
import type { Express, RequestHandler } from 'express';
import { codeBlocks, readMarkdown } from '../support/markdown.js';
import { times } from '../support/http.js';
import { serve } from '../support/served.js';
import type { Served } from '../support/served.js';
import { runSnippet } from '../support/snippet.js';
import { forgetWarnings, watchWarnings } from '../support/warnings.js';

jest.setTimeout(120_000);

const snippets = codeBlocks(readMarkdown('docs/login.md')).filter(({ language }) => language === 'js');
/** Snippets that a test below has run. */
const seen = new Set<string>();

function snippet(heading: string, index = 0): string {
  const found = snippets.find(block => block.heading === heading && block.index === index);
  if (found === undefined)
    throw new Error(`docs/login.md has no snippet ${String(index)} below "${heading}"`);
  seen.add(`${heading} ${String(index)}`);
  return found.code;
}

let app: Express;
let served: Served | undefined;
/** The e-mails whose password was looked at. */
let checked: unknown[];
let codes: string[];

beforeEach(() => {
  // Each test begins with nothing counted in the process's own store.
  Reflect.deleteProperty(globalThis, Symbol.for('limitkeeper.memory-store.v1'));
  forgetWarnings();
  codes = watchWarnings();
  app = express();
  app.set('trust proxy', 1);
  checked = [];
});

afterEach(async () => {
  await served?.close();
  served = undefined;
  jest.restoreAllMocks();
});

afterAll(() => {
  const left = snippets
    .map(({ heading, index }) => `${heading} ${String(index)}`)
    .filter(name => !seen.has(name));
  if (seen.size > 5 && left.length > 0) throw new Error(`nothing runs these snippets: ${left.join(', ')}`);
});

/** The right password of `a@x.y` is `of a`. */
const checkPassword = async (email: unknown, password: unknown): Promise<boolean> => {
  checked.push(email);
  return typeof email === 'string' && password === `of ${email[0]!}`;
};
const isSolved = async (captcha: unknown): Promise<boolean> => captcha === 'solved';

async function recipe(code: string): Promise<void> {
  await runSnippet(code, { app, checkPassword, isSolved });
  served = await serve(app);
}

interface Sent {
  readonly path?: string;
  readonly address?: string;
  readonly cookie?: string;
  readonly captcha?: string;
}

const headersOf = ({ address = '198.51.100.7', cookie }: Sent): Record<string, string> => ({
  'x-forwarded-for': address,
  ...(cookie === undefined ? {} : { cookie }),
});

const json = (email: string, password: string, sent: Sent = {}) =>
  served!.ask(sent.path ?? '/login', {
    json: { email, password, captcha: sent.captcha },
    headers: headersOf(sent),
  });

/** A form as a browser sends it. */
const form = (email: string, password: string, sent: Sent = {}): Promise<Response> =>
  fetch(`${served!.url}/login`, {
    method: 'POST',
    redirect: 'manual',
    headers: headersOf(sent),
    body: new URLSearchParams({ email, password }),
  });

async function statuses(
  count: number,
  ask: (i: number) => Promise<{ readonly status: number }>,
): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i += 1) all.push((await ask(i)).status);
  return all;
}

const cookieOf = (header: string | string[] | null | undefined): string =>
  [header ?? ''].flat().join(';').split(';')[0]!;

describe('One step', () => {
  test('the fifth wrong password announces the block, and a POST without a body is answered', async () => {
    await recipe(snippet('One step'));
    expect((await served!.ask('/login', { method: 'POST' })).status).toBe(401);
    expect(await statuses(4, () => json('a@x.y', 'wrong'))).toEqual(times(4, 401));
    expect((await json('a@x.y', 'of a')).status).toBe(200);
    expect(await statuses(4, () => json('a@x.y', 'wrong'))).toEqual(times(4, 401));
    expect((await json('a@x.y', 'wrong')).headers['retry-after']).toBe('900');
    expect((await json('a@x.y', 'of a')).status).toBe(429);
    expect(codes).toEqual([]);
  });

  test('names looked up in lower case are forgiven in any', async () => {
    const code = `${snippet('One step', 1)}\nmount(login);`;
    const answer: RequestHandler = (req, res) =>
      void res.status((req.body as { password: string }).password === 'right' ? 200 : 401).end();
    await runSnippet(code, {
      mount: (login: RequestHandler) => app.post('/login', express.json(), login, answer),
    });
    served = await serve(app);
    const passwords = ['a', 'b', 'c', 'd', 'right', 'a', 'b', 'c', 'd'];
    expect(await statuses(9, i => json(' A@X.y', passwords[i]!))).toEqual([
      ...times(4, 401),
      200,
      ...times(4, 401),
    ]);
    expect((await served.ask('/login', { method: 'POST' })).status).toBe(500); // of the test's own handler
  });
});

describe('Two steps', () => {
  const first = async (email: string): Promise<string> => {
    const { status, headers } = await json(email, '', { path: '/login/email' });
    expect(status).toBe(200);
    return cookieOf(headers['set-cookie']);
  };
  const second = (cookie: string, password: string) =>
    json('nobody@x.y', password, { path: '/login/password', cookie });

  test('the e-mail of the session counts', async () => {
    await recipe(snippet('Two steps'));
    const cookie = await first('a@x.y');
    expect(await statuses(4, () => second(cookie, 'wrong'))).toEqual(times(4, 401));
    const welcome = await second(cookie, 'of a');
    expect([welcome.status, welcome.text]).toEqual([200, '{"welcome":"a@x.y"}']);
    // A new session: the old one ended with the login.
    expect(cookieOf(welcome.headers['set-cookie'])).not.toBe(cookie);
    const again = await first('a@x.y');
    expect(await statuses(6, () => second(again, 'wrong'))).toEqual([...times(5, 401), 429]);
    expect(codes).toEqual([]);
  });

  test('a password without an e-mail is wrong', async () => {
    await recipe(snippet('Two steps'));
    const answer = await json('a@x.y', 'of undefined', { path: '/login/password' });
    expect([answer.status, answer.text]).toEqual([401, '{"error":"invalid_credentials"}']);
    expect(checked).toEqual([]);
  });

  test('S5 many accounts from one address: 25 wrong passwords', async () => {
    await recipe(snippet('Two steps').replace('email: req => req.session.email', ''));
    const all = await statuses(60, i =>
      json(`user${String(i)}@x.y`, 'Summer2024!', { path: '/login/password' }),
    );
    expect(all).toEqual([...times(25, 401), ...times(35, 429)]);
  });
});

test('An answer that does not tell', async () => {
  await recipe(snippet('An answer that does not tell'));
  expect(await statuses(4, () => form('a@x.y', 'wrong'))).toEqual(times(4, 200));
  expect((await form('a@x.y', 'of a')).headers.get('location')).toBe('/home');
  expect(await statuses(6, () => form('a@x.y', 'wrong'))).toEqual([...times(5, 200), 429]);
  expect((await form('a@x.y', 'of a')).status).toBe(429);
  expect(codes).toEqual([]);
});

describe('Passport', () => {
  test('L2 failureRedirect counts, and a success forgives', async () => {
    await recipe(snippet('Passport'));
    const wrong = await form('a@x.y', 'wrong');
    expect([wrong.status, wrong.headers.get('location')]).toEqual([302, '/login']);
    expect(await statuses(3, () => form('a@x.y', 'wrong'))).toEqual(times(3, 302));
    expect((await form('a@x.y', 'of a')).headers.get('location')).toBe('/');
    expect(await statuses(5, () => form('a@x.y', 'wrong'))).toEqual(times(5, 302));
    expect((await form('a@x.y', 'of a')).status).toBe(429);
    expect(codes).toEqual([]);
  });

  test('whoever is logged in already guesses no longer than others', async () => {
    await recipe(snippet('Passport'));
    const cookie = cookieOf((await form('mallory@x.y', 'of m')).headers.get('set-cookie'));
    expect(cookie).toMatch(/^connect\.sid=/);
    expect(await statuses(8, () => form('victim@x.y', 'wrong', { cookie }))).toEqual([
      ...times(5, 302),
      ...times(3, 429),
    ]);
    expect(checked.filter(email => email === 'victim@x.y')).toHaveLength(5);
  });

  test('L2 without an outcome it is warned of, for then nothing counts', async () => {
    await recipe(snippet('Passport').replace(/loginLimits\(\{[\s\S]*?\n\}\)/, 'loginLimits()'));
    await statuses(20, i => form(`user${String(i)}@x.y`, 'wrong'));
    expect(codes).toEqual(['LIMITKEEPER_LOGIN_WITHOUT_OUTCOME']);
  });
});

test('A captcha', async () => {
  await recipe(snippet('A captcha'));
  expect(await statuses(5, () => json('a@x.y', 'wrong'))).toEqual(times(5, 401));
  const refused = await json('a@x.y', 'of a');
  expect([refused.status, refused.text]).toEqual([429, '{"error":"captcha_required"}']);
  expect((await json('a@x.y', 'wrong', { captcha: 'solved' })).status).toBe(401);
  expect((await json('a@x.y', 'of a')).status).toBe(429);
  expect((await json('a@x.y', 'of a', { captcha: 'solved' })).status).toBe(200);
  expect((await json('a@x.y', 'of a')).status).toBe(200);
});

test('Attackers with patience, or with many addresses: a captcha lets past the account rule alone', async () => {
  await recipe(snippet('Attackers with patience, or with many addresses'));
  const from = (i: number): Sent => ({ address: `203.0.113.${String(i)}` });
  expect(await statuses(20, i => json('a@x.y', 'wrong', from(i % 4)))).toEqual(times(20, 401));
  const asked = await json('a@x.y', 'of a', from(9));
  expect([asked.status, asked.text]).toEqual([429, '{"error":"captcha_required"}']);
  // The owner's solved captcha opens; that of an address which has had its five guesses does not.
  expect((await json('a@x.y', 'of a', { ...from(9), captcha: 'solved' })).status).toBe(200);
  const blocked = await json('a@x.y', 'of a', { ...from(0), captcha: 'solved' });
  expect([blocked.status, blocked.text]).toEqual([429, '{"error":"rate_limit_exceeded"}']);
  // Solving captchas, an address has five guesses more at an account, not any number.
  expect(await statuses(7, () => json('a@x.y', 'wrong', { ...from(5), captcha: 'solved' }))).toEqual([
    ...times(5, 401),
    429,
    429,
  ]);
});

test('Letting somebody in again', async () => {
  const code = snippet('Letting somebody in again');
  await runSnippet(`${code.replace(/\nawait[\s\S]*/, '')}\nmount(login);`, {
    mount: (login: RequestHandler & { password: RequestHandler }) => {
      const wrong: RequestHandler = (_req, res) => void res.status(401).end();
      app.post('/login', express.json(), login, wrong);
      app.post('/login/password', express.json(), login.password, wrong);
    },
  });
  served = await serve(app);
  const sent = { address: '203.0.113.7' };
  const customer = (path: string) => json('user@example.com', 'wrong', { ...sent, path });
  const guesses = (path: string) =>
    statuses(40, i => json(`user${String(i)}@example.com`, 'wrong', { ...sent, path }));
  await statuses(6, () => customer('/login'));
  await guesses('/login');
  await guesses('/login/password');
  expect((await customer('/login')).status).toBe(429);
  expect((await customer('/login/password')).status).toBe(429);
  await runSnippet(code);
  expect((await customer('/login')).status).toBe(401);
  expect((await customer('/login/password')).status).toBe(401);
});
