// Every snippet of docs/recipes.md and docs/responses.md is type-checked and run as it stands there.
import express from 'express';
import { clientIp, createLimiter, decisionHeaders, MemoryStore } from 'limitkeeper';
import { FakeClock } from 'limitkeeper/testing';
import { readMarkdown, tableRows } from '../support/markdown.js';
import { DocPage } from '../support/pages.js';
import { Reader, statuses, times } from '../support/recipe.js';

jest.setTimeout(120_000);

const page = new DocPage('docs/recipes.md');
const responses = new DocPage('docs/responses.md');
const reader = new Reader();

beforeEach(() => {
  reader.begin();
});
afterEach(() => reader.end());
afterAll(() => {
  page.expectAllRun();
  responses.expectAllRun();
});

const READERS_OWN = `
import type { Express, Request, RequestHandler } from 'express';
declare global {
  const app: Express;
  const authenticate: RequestHandler;
  const routes: RequestHandler;
  function accountOf(req: Request): { id: string; plan: 'free' | 'pro' | 'enterprise' | 'partner' };
  function countUnits(text: string): number;
  function askModel(prompt: string, options: { most: number }): Promise<{ text: string; units: number }>;
  function isUnchanged(): Promise<boolean>;
}
`;

test.each([page, responses])('every snippet of $file type-checks', ({ file }) => {
  expect(new DocPage(file).typeMistakes(READERS_OWN)).toEqual([]);
});

test('API', async () => {
  const authenticate = jest.fn((_req, _res, next: () => void) => {
    next();
  });
  await reader.recipe(page.snippet('API'), { authenticate, routes: express.Router() });
  expect(await statuses(61, () => reader.ask('/api'))).toEqual([...times(60, 200), 429]);
  expect(authenticate).toHaveBeenCalledTimes(60);
  const withToken = await reader.ask('/api', { headers: { authorization: 'Bearer a' } });
  expect(withToken.headers['ratelimit-policy']).toBe(
    '"api.token_ip";q=600;w=60, "api.invalid_token.ip";q=120;w=60',
  );
});

test('API: 120 bad tokens from one address shut out the good ones from there', async () => {
  const authenticate = (req: express.Request, res: express.Response, next: () => void): void => {
    if (req.get('authorization') === 'Bearer good') next();
    else res.sendStatus(401);
  };
  await reader.recipe(page.snippet('API'), { authenticate, routes: express.Router() });
  const ask = (token: string) => reader.ask('/api', { headers: { authorization: `Bearer ${token}` } });
  expect((await ask('good')).status).toBe(200);
  expect(await statuses(120, i => ask(`bad${String(i)}`))).toEqual(times(120, 401));
  const good = await ask('good');
  expect([good.status, good.headers['retry-after']]).toEqual([429, '120']);
});

test('Plans', async () => {
  await reader.recipe(page.snippet('Plans'), {
    authenticate: express.Router(),
    accountOf: (req: express.Request) => ({ id: 'a', plan: req.get('x-plan') }),
  });
  reader.app.use((_error: unknown, _req: express.Request, res: express.Response, _next: unknown) => {
    res.status(500).end();
  });
  const policy = async (plan: string): Promise<unknown> =>
    (await reader.ask('/api', { headers: { 'x-plan': plan } })).headers['ratelimit-policy'];
  expect(await policy('free')).toBe('"api.account";q=60;w=60');
  expect(await policy('pro')).toBe('"api.account";q=600;w=60');
  expect(await policy('enterprise')).toBe('"api.account";q=20000;w=3600');
  expect(await policy('partner')).toBeUndefined();
  expect((await reader.ask('/api', { headers: { 'x-plan': 'gold' } })).status).toBe(500);
});

test('AI cost', async () => {
  await reader.recipe(page.snippet('AI cost'), {
    authenticate: express.Router(),
    accountOf: () => ({ id: 'a' }),
    countUnits: (text: string) => text.length,
    askModel: async (prompt: string, { most }: { most: number }) => ({
      text: prompt,
      units: prompt.length + most / 10,
    }),
  });
  // Without a body, and so without a prompt: 100 are answered.
  const { status, text: answer } = await reader.ask('/ask', { method: 'POST' });
  expect([status, JSON.parse(answer)]).toEqual([200, { text: '', left: 49_900 }]);
  // 20 units asked and 100 answered.
  const { text } = await reader.ask('/ask', { json: { prompt: 'x'.repeat(20) } });
  expect(JSON.parse(text)).toEqual({ text: 'x'.repeat(20), left: 49_780 });
  expect((await reader.ask('/ask', { json: { prompt: 'x'.repeat(49_000) } })).status).toBe(429);
});

test('Several rules', async () => {
  await reader.recipe(page.snippet('Several rules'));
  const names = async (query: string): Promise<string[]> => {
    const policy = String((await reader.ask(`/search${query}`)).headers['ratelimit-policy']);
    return [...policy.matchAll(/"([^"]+)"/g)].map(([, name]) => name!);
  };
  expect(await names('')).toEqual(['search.second', 'search.minute', 'search.everybody']);
  expect(await names('?format=csv')).toContain('search.export');
});

describe('An allow-list of addresses', () => {
  const heading = 'An allow-list of addresses';
  const from = (address: string) => (): Promise<{ status: number }> =>
    reader.ask('/', { headers: { 'x-forwarded-for': address } });

  beforeEach(() => {
    reader.app.set('trust proxy', 1);
  });

  test.each([
    ['203.0.113.7', true],
    ['::ffff:203.0.113.7', true],
    ['::ffff:cb00:7107', true],
    ['2001:db8:0:aaff::1', true],
    ['203.0.113.8', false],
    ['2001:db8:0:ab00::1', false],
  ])('by address: is %s let past? %s', async (address, isAllowed) => {
    await reader.recipe(page.snippet(heading));
    expect(await statuses(61, from(address))).toEqual([...times(60, 200), isAllowed ? 200 : 429]);
  });

  test.each([
    ['10.1.2.3', true],
    ['::ffff:10.1.2.3', true],
    ['2001:db8:1:ffff::1', true],
    ['11.1.2.3', false],
    ['2001:db8:2::1', false],
    ['no address', false],
  ])('by network: is %s let past? %s', async (address, isAllowed) => {
    await reader.recipe(page.snippet(heading, 1));
    expect(await statuses(61, from(address))).toEqual([...times(60, 200), isAllowed ? 200 : 429]);
  });

  test('the table of forms is true', () => {
    const rows = tableRows(readMarkdown('docs/recipes.md'), heading, 'came as');
    const [first, second, third, none] = rows.map(row => row['`clientIp(req)`']!);
    for (const ip of ['203.0.113.7', '::ffff:203.0.113.7', '::ffff:cb00:7107']) {
      expect(first).toBe(`\`${clientIp({ ip })}\``);
    }
    expect(second).toContain(`\`${clientIp({ ip: '2001:db8:0:aaff::1' })}\``);
    expect(third).toBe(`\`${clientIp({ ip: '2001:db8:0:aaff::1' }, 128)}\``);
    expect(none).toBe(`\`${clientIp({})}\``);
  });
});

test('Trial run', async () => {
  const log = jest.spyOn(console, 'log').mockImplementation();
  await reader.recipe(page.snippet('Trial run'));
  expect(await statuses(61, () => reader.ask('/api'))).toEqual(times(61, 200));
  expect(log.mock.calls).toEqual([[expect.stringMatching(/^api\.ip would have refused [\da-f]{64}$/)]]);
});

test('In a handler', async () => {
  let unchanged = false;
  await reader.recipe(page.snippet('In a handler'), { isUnchanged: async () => unchanged });
  expect(JSON.parse((await reader.ask('/import')).text)).toEqual({ left: 9, before: 9 });
  unchanged = true;
  expect(JSON.parse((await reader.ask('/import')).text)).toEqual({ left: 9, before: 8 });
});

test('the example of a RateLimit with several rules is true', async () => {
  const limiter = createLimiter({
    rules: [
      { scope: 'search.second', limit: 2, windowSec: 1, blockSec: 300 },
      { scope: 'search.minute', limit: 60, windowSec: 60 },
    ],
    store: new MemoryStore({ clock: new FakeClock(1_750_000_000_000) }),
  });
  for (let i = 0; i < 2; i += 1) await limiter.consume('a');
  const { RateLimit, 'Retry-After': wait } = decisionHeaders(await limiter.consume('a'));
  const text = readMarkdown('docs/responses.md').replace(/\s+/g, ' ');
  expect(text).toContain(`of \`${RateLimit!}\` the first refuses.`);
  expect(text).toContain(`for all rules together: ${wait!}.`);
});

test('Another answer', async () => {
  await reader.recipe(responses.snippet('Another answer'));
  expect(await statuses(60, () => reader.ask('/'))).toEqual(times(60, 200));
  const refused = await reader.ask('/');
  expect([refused.status, refused.text]).toEqual([
    429,
    expect.stringMatching(/^Please come back in \d+ seconds\.$/),
  ]);
});
