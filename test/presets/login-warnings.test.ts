import express5 from 'express';
import type { RequestHandler } from 'express';
import { MemoryStore } from 'limitkeeper';
import { loginLimits } from 'limitkeeper/presets';
import type { LoginLimitsOptions } from 'limitkeeper/presets';
import { EXPRESSES } from '../support/http.js';
import { serve } from '../support/served.js';
import type { Served } from '../support/served.js';
import { forgetWarnings, watchWarnings } from '../support/warnings.js';

const WITHOUT_OUTCOME = 'LIMITKEEPER_LOGIN_WITHOUT_OUTCOME';
const BEFORE_BODY_PARSER = 'LIMITKEEPER_LOGIN_BEFORE_BODY_PARSER';
const WITHOUT_EMAIL = 'LIMITKEEPER_LOGIN_WITHOUT_EMAIL';

let codes: string[];
let served: Served;

beforeEach(() => {
  forgetWarnings();
  codes = watchWarnings();
});

afterEach(async () => {
  await served.close();
  jest.restoreAllMocks();
});

const PATHS = ['/login', '/login/password'];

/** Answers as the request wishes; behind the body parser, or before it. */
async function start(
  options: LoginLimitsOptions = {},
  { express = express5, parser = 'before' }: { express?: typeof express5; parser?: 'before' | 'behind' } = {},
): Promise<void> {
  const app = express();
  app.set('trust proxy', 1);
  const limits = loginLimits({ store: new MemoryStore(), ...options });
  const answer: RequestHandler = (req, res) => {
    res.locals['result'] = req.get('x-result');
    res.status(Number(req.get('x-status') ?? 401)).json({});
  };
  const json = express.json();
  const on = (limit: RequestHandler): RequestHandler[] =>
    parser === 'before' ? [json, limit] : [limit, json];
  app.all('/login', ...on(limits), answer);
  app.all('/login/email', ...on(limits.resolve), answer);
  app.all('/login/password', ...on(limits.password), answer);
  served = await serve(app);
}

/** So many logins, each from an address of its own and for an account of its own. */
async function logins(
  count: number,
  status: number,
  { path = '/login', method = 'POST', headers = {}, json = {} } = {},
): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const named = { email: `user${String(i)}@x.y`, ...json };
    await served.ask(path, {
      method,
      json: method === 'GET' ? undefined : named,
      headers: { 'x-forwarded-for': `198.51.100.${String(i)}`, 'x-status': String(status), ...headers },
    });
  }
}

describe.each(EXPRESSES)('L2 with %s', (_name, express) => {
  test.each(PATHS)('at %s 20 logins that all redirect are warned of, once', async path => {
    await start({}, { express });
    await logins(19, 302, { path });
    expect(codes).toEqual([]);
    await logins(30, 302, { path });
    expect(codes).toEqual([WITHOUT_OUTCOME]);
  });

  test.each(PATHS)('at %s, mounted before the body parser: warned of with the first login', async path => {
    await start({}, { express, parser: 'behind' });
    await logins(3, 401, { path });
    expect(codes).toEqual([BEFORE_BODY_PARSER]);
  });

  test('a POST without a body is no mistake of the application, and is answered', async () => {
    await start({}, { express });
    for (const path of [...PATHS, '/login/email'])
      expect((await served.ask(path, { method: 'POST' })).status).toBe(401);
    expect(codes).toEqual([]);
  });

  test('nor is a body that the parser leaves alone, once it has been seen to work', async () => {
    await start({}, { express });
    await logins(1, 401);
    const form = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    for (let i = 0; i < 3; i += 1) await served.ask('/login', form);
    expect(codes).toEqual([]);
  });
});

test('L2 where right passwords answer 200 and wrong ones redirect, the guesses count as little', async () => {
  await start();
  await logins(5, 200);
  await logins(20, 302);
  expect(codes).toEqual([WITHOUT_OUTCOME]);
});

test.each<[string, () => Promise<void>]>([
  ['wrong passwords that answer 401', () => logins(1, 401).then(() => logins(40, 302))],
  ['right passwords alone', () => logins(40, 200)],
  ['a page that is shown', () => logins(40, 302, { method: 'GET' })],
  ['an application that fails', () => logins(40, 500)],
  ['the step that asks for the e-mail', () => logins(24, 302, { path: '/login/email' })],
])('L2 no warning for %s', async (_name, ask) => {
  await start();
  await ask();
  expect(codes).toEqual([]);
});

test('L2 an outcome that tells failures is not warned of, one that tells nothing is', async () => {
  await start({
    outcome: (_req, res) => (res.locals['result'] === 'wrong' ? 'failure' : 'ignore'),
  });
  await logins(1, 200, { headers: { 'x-result': 'wrong' } });
  await logins(40, 200);
  expect(codes).toEqual([]);
  await served.close();
  await start({ outcome: () => 'ignore' });
  await logins(20, 200);
  expect(codes).toEqual([WITHOUT_OUTCOME]);
});

test('L2 a name in another field is warned of after 20 logins, unless the option email reads it', async () => {
  const json = { email: undefined, username: 'somebody' };
  await start({ email: req => (req.body as { username?: unknown }).username });
  await logins(30, 401, { json });
  expect(codes).toEqual([]);
  await served.close();
  await start();
  await logins(19, 401, { json });
  expect(codes).toEqual([]);
  await logins(10, 401, { json });
  expect(codes).toEqual([WITHOUT_EMAIL]);
});

test('L2 a key of one’s own asks for no e-mail and is not warned of', async () => {
  await start({ password: { keyFn: req => req.get('x-forwarded-for') ?? '-' } }, { parser: 'behind' });
  await logins(30, 401);
  expect(codes).toEqual([]);
});
