// Every snippet of the README is type-checked and run as it stands there.
import express from 'express';
import { DocPage } from '../support/pages.js';
import { Reader, statuses, times } from '../support/recipe.js';

jest.setTimeout(120_000);

const page = new DocPage('README.md');
const reader = new Reader();

beforeEach(() => {
  reader.begin();
});
afterEach(() => reader.end());
afterAll(() => {
  page.expectAllRun();
});

test('every snippet type-checks', () => {
  const readersOwn = `
import type { Express, RequestHandler } from 'express';
declare global {
  const app: Express;
  const authenticate: RequestHandler;
  const routes: RequestHandler;
}
`;
  expect(page.typeMistakes(readersOwn)).toEqual([]);
});

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

const login =
  (url: string) =>
  (password?: string): Promise<Response> =>
    fetch(`${url}/login`, {
      method: 'POST',
      ...(password === undefined
        ? {}
        : {
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ email: 'user@example.com', password }),
          }),
    });

describe('the first screen', () => {
  test('begins with one command that runs the demo and one that passes the tests', () => {
    const [commands] = page.blocks.filter(({ language }) => language === 'sh');
    expect(commands!.code).toBe('npm ci && npm run demo\nnpm ci && npm test\n');
  });

  // zsh hands what follows a # to the command: `npm install express # in your application` installs five packages.
  test('no command has a comment behind it', () => {
    const commands = page.blocks.filter(({ language }) => language === 'sh');
    expect(commands.filter(({ code }) => code.includes('#'))).toEqual([]);
  });

  test('eight lines limit an API and a login', async () => {
    const code = page.snippet('limitkeeper');
    expect(code.trimEnd().split('\n')).toHaveLength(8);
    const url = await reader.start(code);
    expect(await statuses(121, () => fetch(`${url}/api/x`))).toEqual([...times(120, 404), 429]);
    const attempt = login(url);
    expect(await statuses(6, i => attempt(i === 5 ? 'open sesame' : 'wrong'))).toEqual([
      ...times(5, 401),
      429,
    ]);
  });

  test('its login survives a POST without a body', async () => {
    expect((await login(await reader.start(page.snippet('limitkeeper')))()).status).toBe(401);
  });
});

describe('The first five minutes', () => {
  const shown = page.blocks.filter(({ language }) => language === 'http').map(({ code }) => code);

  test('the app answers what is shown, and refuses after 120 requests', async () => {
    const url = `${await reader.start(page.snippet('The first five minutes'))}/api/hello`;
    await expectShown(shown[0]!, await fetch(url));
    expect(await statuses(119, () => fetch(url))).toEqual(times(119, 200));
    await expectShown(shown[1]!, await fetch(url));
  });
});

describe('A login', () => {
  test('announces its block with the fifth wrong password', async () => {
    const attempt = login(await reader.start(page.snippet('A login')));
    expect((await attempt('open sesame')).status).toBe(200);
    expect(await statuses(4, () => attempt('wrong'))).toEqual(times(4, 401));
    const fifth = await attempt('wrong');
    expect([fifth.status, fifth.headers.get('retry-after')]).toEqual([401, '900']);
    expect((await attempt('open sesame')).status).toBe(429);
  });

  test('survives a POST without a body', async () => {
    expect((await login(await reader.start(page.snippet('A login')))()).status).toBe(401);
  });
});

test('An API', async () => {
  const authenticate = jest.fn((_req, res: express.Response) => {
    res.sendStatus(401);
  });
  await reader.recipe(page.snippet('An API'), { authenticate, routes: express.Router() });
  expect(await statuses(121, () => reader.ask('/api'))).toEqual([...times(120, 401), 429]);
  expect(authenticate).toHaveBeenCalledTimes(120);
});
