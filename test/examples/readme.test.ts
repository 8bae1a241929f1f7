// Every snippet of the README is type-checked and run as it stands there.
import path from 'node:path';
import express from 'express';
import type { Express } from 'express';
import { createLimiter } from 'limitkeeper';
import { loginLimits } from 'limitkeeper/presets';
import ts from 'typescript';
import { codeBlocks, readMarkdown } from '../support/markdown.js';
import { serve } from '../support/served.js';
import type { Answer, Served } from '../support/served.js';
import { runSnippet, urlOf } from '../support/snippet.js';
import type { Snippet } from '../support/snippet.js';

jest.setTimeout(120_000);

const root = path.join(__dirname, '../..');
const blocks = codeBlocks(readMarkdown('README.md'));
const snippets = blocks.filter(({ language }) => language === 'js');

/** What the README says is the reader's own. */
const READERS_OWN = `
import type { Express, Request, RequestHandler } from 'express';
declare global {
  const app: Express;
  const authenticate: RequestHandler;
  const routes: RequestHandler;
  function accountOf(req: Request): { id: string; plan: 'free' | 'pro' | 'enterprise' | 'partner' };
  function checkPassword(email: string, password: string): Promise<boolean>;
  function isSolved(captcha: unknown): Promise<boolean>;
  function countUnits(text: string): number;
  function askModel(prompt: string, options: { most: number }): Promise<{ text: string; units: number }>;
  function sendMails(): Promise<void>;
  function isUnchanged(): Promise<boolean>;
}
`;

test('every snippet type-checks', () => {
  const { config } = ts.readConfigFile(path.join(root, 'tsconfig.json'), name => ts.sys.readFile(name)) as {
    config: { compilerOptions: object };
  };
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  const files = new Map(
    snippets.map(({ code, line }) => [path.join(__dirname, `readme-line-${String(line)}.mts`), code]),
  );
  files.set(path.join(__dirname, 'readers-own.d.mts'), READERS_OWN);
  const settings: ts.CompilerOptions = {
    ...options,
    types: ['node'],
    // These hold for this repository; the README is JavaScript.
    noImplicitAny: false,
    noUnusedLocals: false,
    noUnusedParameters: false,
    noPropertyAccessFromIndexSignature: false,
    noUncheckedIndexedAccess: false,
    strictNullChecks: false,
    exactOptionalPropertyTypes: false,
  };
  const host = ts.createCompilerHost(settings);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = name => files.has(name) || fileExists(name);
  host.readFile = name => files.get(name) ?? readFile(name);
  host.getSourceFile = (name, languageVersion, ...rest) => {
    const text = files.get(name);
    return text === undefined
      ? getSourceFile(name, languageVersion, ...rest)
      : ts.createSourceFile(name, text, languageVersion, true);
  };
  const program = ts.createProgram([...files.keys()], settings, host);
  const mistakes = [...files.keys()].flatMap(name =>
    ts.getPreEmitDiagnostics(program, program.getSourceFile(name)).map(({ messageText }) => {
      return `${path.basename(name)}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    }),
  );
  expect(mistakes).toEqual([]);
});

/** Snippets that a test below has run. */
const seen = new Set<string>();

function snippet(heading: string, index = 0): string {
  const found = snippets.find(block => block.heading === heading && block.index === index);
  if (found === undefined) throw new Error(`the README has no snippet ${String(index)} below "${heading}"`);
  seen.add(`${heading} ${String(index)}`);
  return found.code;
}

let app: Express;
let served: Served | undefined;
let running: Snippet | undefined;

beforeEach(() => {
  // Each test begins with nothing counted in the process's own store.
  Reflect.deleteProperty(globalThis, Symbol.for('limitkeeper.memory-store.v1'));
  app = express();
});

afterEach(async () => {
  await served?.close();
  await running?.close();
  served = running = undefined;
  jest.restoreAllMocks();
});

afterAll(() => {
  // Here and not in a test of its own, so that one test alone can be run.
  const left = snippets
    .map(({ heading, index }) => `${heading} ${String(index)}`)
    .filter(name => !seen.has(name));
  if (seen.size > 10 && left.length > 0) throw new Error(`nothing runs these snippets: ${left.join(', ')}`);
});

/** Runs a recipe on `app`, with the reader's own parts as given. */
async function recipe(code: string, own: Record<string, unknown> = {}): Promise<void> {
  running = await runSnippet(code, { app, ...own });
  app.use((_req, res) => {
    res.json({ passed: true });
  });
  served = await serve(app);
}

const ask: Served['ask'] = (...args) => served!.ask(...args);

async function statuses(
  count: number,
  request: (i: number) => Promise<{ status: number }>,
): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i += 1) all.push((await request(i)).status);
  return all;
}

/** Does an answer look like the one that the README shows? Unix times only have to be numbers. */
async function expectShown(shown: string, response: Response): Promise<void> {
  const [head = '', body = ''] = shown.trim().split('\n\n');
  const [status = '', ...headers] = head.split('\n');
  expect(status).toMatch(new RegExp(`^HTTP/1.1 ${String(response.status)} `));
  for (const header of headers) {
    const [name = '', value = ''] = header.split(': ');
    const got = response.headers.get(name);
    if (name === 'X-RateLimit-Reset') expect(got).toMatch(/^\d{10}$/);
    else expect([name, got]).toEqual([name, value]);
  }
  if (body !== '') expect(await response.text()).toBe(body);
}

describe('The first five minutes', () => {
  const shown = blocks.filter(({ language }) => language === 'http').map(({ code }) => code);

  test('the app answers what is shown, and refuses after 120 requests', async () => {
    running = await runSnippet(snippet('The first five minutes'));
    const url = `${urlOf(running.servers[0])}/api/hello`;
    await expectShown(shown[0]!, await fetch(url));
    expect(await statuses(119, () => fetch(url))).toEqual(new Array(119).fill(200));
    await expectShown(shown[1]!, await fetch(url));
  });

  test('the login announces its block with the fifth wrong password', async () => {
    running = await runSnippet(snippet('The first five minutes', 1));
    const login = (password: string): Promise<Response> =>
      fetch(`${urlOf(running!.servers[0])}/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: 'user@example.com', password }),
      });
    expect((await login('open sesame')).status).toBe(200);
    expect(await statuses(4, () => login('wrong'))).toEqual([401, 401, 401, 401]);
    const fifth = await login('wrong');
    expect([fifth.status, fifth.headers.get('retry-after')]).toEqual([401, '900']);
    expect((await login('open sesame')).status).toBe(429);
  });
});

const checkPassword = async (_email: string, password: string): Promise<boolean> => password === 'right';

describe('Login', () => {
  const json = (path: string, password: string, more = {}): Promise<Answer> =>
    ask(path, { json: { email: 'user@example.com', password, ...more } });

  test('a form that redirects says how it went', async () => {
    await recipe(snippet('Login'), { checkPassword });
    const form = (password: string): Promise<Response> =>
      fetch(`${served!.url}/login`, {
        method: 'POST',
        redirect: 'manual',
        body: new URLSearchParams({ email: 'user@example.com', password }),
      });
    expect(await statuses(4, () => form('wrong'))).toEqual([303, 303, 303, 303]);
    expect((await form('right')).headers.get('location')).toBe('/home');
    expect(await statuses(6, () => form('wrong'))).toEqual([303, 303, 303, 303, 303, 429]);
  });

  test('two steps with other numbers', async () => {
    await recipe(snippet('Login', 1), { checkPassword });
    expect(await statuses(4, () => json('/login/password', 'wrong'))).toEqual([401, 401, 401, 429]);
    expect((await json('/login/password', 'right')).headers['retry-after']).toBe('60');
    expect(await statuses(51, () => json('/login/email', ''))).toEqual([
      ...new Array<number>(50).fill(200),
      429,
    ]);
  });

  test('a captcha in place of the refusal', async () => {
    await recipe(snippet('Login', 2), {
      checkPassword,
      isSolved: async (captcha: unknown) => captcha === 'solved',
    });
    expect(await statuses(5, () => json('/login', 'wrong'))).toEqual([401, 401, 401, 401, 401]);
    const refused = await json('/login', 'right');
    expect([refused.status, refused.text]).toEqual([429, '{"error":"captcha_required"}']);
    expect((await json('/login', 'wrong', { captcha: 'solved' })).status).toBe(401);
    expect((await json('/login', 'right')).status).toBe(429);
    expect((await json('/login', 'right', { captcha: 'solved' })).status).toBe(200);
    expect((await json('/login', 'right')).status).toBe(200);
  });

  test('letting somebody in again', async () => {
    app.set('trust proxy', 1);
    app.post('/login', express.json(), loginLimits(), (_req, res) => {
      res.status(401).end();
    });
    served = await serve(app);
    const wrong = (): Promise<Answer> =>
      ask('/login', { json: { email: 'user@example.com' }, headers: { 'x-forwarded-for': '203.0.113.7' } });
    expect(await statuses(6, wrong)).toEqual([401, 401, 401, 401, 401, 429]);
    running = await runSnippet(snippet('Login', 3));
    expect((await wrong()).status).toBe(401);
  });
});

test('API', async () => {
  const authenticate = jest.fn((_req, _res, next: () => void) => {
    next();
  });
  await recipe(snippet('API'), { authenticate, routes: express.Router() });
  expect(await statuses(61, () => ask('/api'))).toEqual([...new Array<number>(60).fill(200), 429]);
  expect(authenticate).toHaveBeenCalledTimes(60);
  const withToken = await ask('/api', { headers: { authorization: 'Bearer a' } });
  expect(withToken.headers['ratelimit-policy']).toBe(
    '"api.token_ip";q=600;w=60, "api.invalid_token.ip";q=120;w=60',
  );
});

test('Plans', async () => {
  await recipe(snippet('Plans'), {
    authenticate: express.Router(),
    accountOf: (req: express.Request) => ({ id: 'a', plan: req.get('x-plan') }),
  });
  app.use((_error: unknown, _req: express.Request, res: express.Response, _next: unknown) => {
    res.status(500).end();
  });
  const policy = async (plan: string): Promise<unknown> =>
    (await ask('/api', { headers: { 'x-plan': plan } })).headers['ratelimit-policy'];
  expect(await policy('free')).toBe('"api.account";q=60;w=60');
  expect(await policy('pro')).toBe('"api.account";q=600;w=60');
  expect(await policy('enterprise')).toBe('"api.account";q=20000;w=3600');
  expect(await policy('partner')).toBeUndefined();
  expect((await ask('/api', { headers: { 'x-plan': 'gold' } })).status).toBe(500);
});

test('AI cost', async () => {
  await recipe(snippet('AI cost'), {
    authenticate: express.Router(),
    accountOf: () => ({ id: 'a' }),
    countUnits: (text: string) => text.length,
    askModel: async (prompt: string, { most }: { most: number }) => ({
      text: prompt,
      units: prompt.length + most / 10,
    }),
  });
  // 20 units asked and 100 answered.
  const { text } = await ask('/ask', { json: { prompt: 'x'.repeat(20) } });
  expect(JSON.parse(text)).toEqual({ text: 'x'.repeat(20), left: 49_880 });
  expect((await ask('/ask', { json: { prompt: 'x'.repeat(49_000) } })).status).toBe(429);
});

test('Behind a proxy', async () => {
  await recipe(snippet('Behind a proxy'));
  expect(app.get('trust proxy')).toBe(1);
});

test('Several rules', async () => {
  await recipe(snippet('Several rules'));
  const names = async (query: string): Promise<string[]> => {
    const policy = String((await ask(`/search${query}`)).headers['ratelimit-policy']);
    return [...policy.matchAll(/"([^"]+)"/g)].map(([, name]) => name!);
  };
  expect(await names('')).toEqual(['search.second', 'search.minute', 'search.everybody']);
  expect(await names('?format=csv')).toContain('search.export');
});

describe('Other servers and jobs', () => {
  test('a server without Express', async () => {
    running = await runSnippet(snippet('Other servers and jobs'));
    const url = urlOf(running.servers[0]);
    expect(await statuses(2, () => fetch(url))).toEqual([200, 200]);
    const refused = await fetch(url);
    expect([refused.status, refused.headers.get('content-type')]).toEqual([429, 'application/problem+json']);
    expect(await refused.json()).toMatchObject({ status: 429, 'violated-policies': ['raw.ip'] });
  });

  test('a job', async () => {
    const sendMails = jest.fn();
    await runSnippet(snippet('Other servers and jobs', 1), { sendMails });
    expect(sendMails).toHaveBeenCalledTimes(1);
    // 3 consumed and 7 settled.
    const { remaining } = await createLimiter({ scope: 'mail.user', limit: 100, windowSec: 3600 }).peek(
      'alice',
    );
    expect(remaining).toBe(90);
  });
});

test('Trial run', async () => {
  const log = jest.spyOn(console, 'log').mockImplementation();
  await recipe(snippet('Trial run'));
  expect(await statuses(61, () => ask('/api'))).toEqual(new Array(61).fill(200));
  expect(log.mock.calls).toEqual([[expect.stringMatching(/^api\.ip would have refused [\da-f]{64}$/)]]);
});

test('In a handler', async () => {
  let unchanged = false;
  await recipe(snippet('In a handler'), { isUnchanged: async () => unchanged });
  expect(JSON.parse((await ask('/import')).text)).toEqual({ left: 9, before: 9 });
  unchanged = true;
  expect(JSON.parse((await ask('/import')).text)).toEqual({ left: 9, before: 8 });
});

test('Events', async () => {
  await recipe(snippet('Events'));
});

test('Testing your app', async () => {
  served = await serve(app);
  const asked: number[] = [];
  const request = async (): Promise<void> => {
    // Behind what the snippet has put before it.
    if (asked.length === 0) app.use((_req, res) => void res.json({}));
    asked.push((await ask('/')).status);
  };
  // The comments of the snippet, done.
  const code = snippet('Testing your app')
    .replace('// The first request passes, the second is refused.', 'await request(); await request();')
    .replace('// The next one passes.', 'await request(); await request();');
  await runSnippet(`${code}\nawait request();`, { app, request });
  expect(asked).toEqual([200, 429, 200, 429, 200]);
});

test('Errors', async () => {
  const log = jest.spyOn(console, 'log').mockImplementation();
  await runSnippet(snippet('Errors'));
  expect(log.mock.calls).toEqual([['ERR_LIMITKEEPER_OPTION_RANGE', 'limit']]);
});
