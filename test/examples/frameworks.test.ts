// Every snippet of docs/frameworks.md is type-checked, and run as it stands there with the framework itself.
import { createLimiter } from 'limitkeeper';
import { WebSocket } from 'ws';
import { DocPage } from '../support/pages.js';
import { Reader, statuses, times } from '../support/recipe.js';

jest.setTimeout(120_000);

const page = new DocPage('docs/frameworks.md');
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
import type { Express } from 'express';
declare global {
  const app: Express;
  function checkPassword(email: string, password: string): Promise<boolean>;
  function sendMails(): Promise<void>;
}
`;
  expect(page.typeMistakes(readersOwn)).toEqual([]);
});

test("Node's http", async () => {
  const url = await reader.start(page.snippet("Node's http"));
  expect(await statuses(2, () => fetch(url))).toEqual([200, 200]);
  const refused = await fetch(url);
  expect([refused.status, refused.headers.get('content-type')]).toEqual([429, 'application/problem+json']);
  expect(await refused.json()).toMatchObject({ status: 429, 'violated-policies': ['raw.ip'] });
});

test('Fastify', async () => {
  const url = `${await reader.start(page.snippet('Fastify'))}/hello`;
  const first = await fetch(url);
  expect([first.status, first.headers.get('ratelimit'), await first.json()]).toEqual([
    200,
    '"api.ip";r=119;t=120',
    { hello: 'world' },
  ]);
  expect(await statuses(119, () => fetch(url))).toEqual(times(119, 200));
  const refused = await fetch(url);
  expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('content-type')]).toEqual([
    429,
    '120',
    expect.stringContaining('application/problem+json'),
  ]);
  expect(await refused.json()).toMatchObject({ 'violated-policies': ['api.ip'] });
});

describe('NestJS', () => {
  const attempt = (url: string, email: string): Promise<Response> =>
    fetch(`${url}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password: 'wrong' }),
    });

  test('middleware of the application and of a module', async () => {
    const url = await reader.start(page.snippet('NestJS'));
    const hello = await fetch(`${url}/hello`);
    expect([hello.status, hello.headers.get('ratelimit')]).toEqual([200, '"all.ip";r=119;t=120']);
    // By e-mail, so the body was there; the exception of the fifth tells of the block.
    expect(await statuses(4, () => attempt(url, 'a@example.com'))).toEqual(times(4, 401));
    const fifth = await attempt(url, 'a@example.com');
    expect([fifth.status, fifth.headers.get('retry-after')]).toEqual([401, '900']);
    expect((await attempt(url, 'a@example.com')).status).toBe(429);
    expect((await attempt(url, 'b@example.com')).status).toBe(401);
  });

  test('a guard', async () => {
    const { exports } = await reader.run(page.snippet('NestJS', 1));
    const { AccountLimit } = exports as { AccountLimit: new () => object };
    // In an application of Nest, behind a guard that knows who it is.
    const code = `
      import { Controller, Get, Module, UseGuards } from '@nestjs/common';
      import { NestFactory } from '@nestjs/core';
      class AuthGuard {
        canActivate(context) {
          const request = context.switchToHttp().getRequest();
          request.user = { id: request.get('x-user') };
          return true;
        }
      }
      @Controller()
      class OrderController {
        @Get('orders')
        @UseGuards(AuthGuard, AccountLimit)
        orders() { return []; }
      }
      @Module({ controllers: [OrderController] })
      class AppModule {}
      const nest = await NestFactory.create(AppModule, { logger: ['error'] });
      await nest.listen(3000);`;
    const url = await reader.start(code, { AccountLimit });
    const ask = (user: string) => (): Promise<Response> =>
      fetch(`${url}/orders`, { headers: { 'x-user': user } });
    expect(await statuses(3, ask('alice'))).toEqual([200, 200, 429]);
    const refused = await ask('alice')();
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(await refused.json()).toMatchObject({ 'violated-policies': ['api.account'] });
    expect(await statuses(1, ask('bob'))).toEqual([200]);
  });
});

describe('WebSocket', () => {
  const opened = async (url: string): Promise<WebSocket | number> =>
    new Promise(resolve => {
      const socket = new WebSocket(url.replace('http', 'ws'));
      socket.on('open', () => resolve(socket));
      socket.on('unexpected-response', (_req, res) => {
        res.resume();
        resolve(res.statusCode!);
      });
      socket.on('error', () => {});
    });

  test('handshakes', async () => {
    const url = await reader.start(page.snippet('WebSocket'));
    const sockets: (WebSocket | number)[] = [];
    for (let i = 0; i < 11; i += 1) sockets.push(await opened(url));
    expect(sockets.map(socket => (typeof socket === 'number' ? socket : 'open'))).toEqual([
      ...new Array<string>(10).fill('open'),
      429,
    ]);
    for (const socket of sockets) if (typeof socket !== 'number') socket.terminate();
  });

  test('messages, of all connections of a client together', async () => {
    const url = await reader.start(page.snippet('WebSocket'));
    const [one, two] = [await opened(url), await opened(url)] as [WebSocket, WebSocket];
    const echoes: string[] = [];
    for (const socket of [one, two]) {
      socket.on('message', data => echoes.push((data as Buffer).toString()));
      for (let i = 0; i < 10; i += 1) socket.send(String(i));
    }
    while (echoes.length < 20) await new Promise(resolve => setTimeout(resolve, 5));
    const closed = new Promise(resolve => one.once('close', code => resolve(code)));
    one.send('one more');
    expect(await closed).toBe(1008);
    expect(echoes).toHaveLength(20);
    two.terminate();
  });
});

describe('GraphQL', () => {
  const checkPassword = jest.fn(async (_email: string, password: string) => password === 'right');
  const query = async (text: string): Promise<{ data: unknown; errors?: { message: string }[] }> => {
    const { text: body } = await reader.ask('/graphql', { json: { query: text } });
    return JSON.parse(body) as { data: unknown; errors?: { message: string }[] };
  };
  const guess = (alias: string, password = 'wrong', email = 'a@example.com'): string =>
    `${alias}: login(email: "${email}", password: "${password}")`;

  beforeEach(async () => {
    checkPassword.mockClear();
    await reader.recipe(page.snippet('GraphQL'), { checkPassword });
  });

  test('twenty aliases of one request are twenty guesses', async () => {
    const aliases = Array.from({ length: 20 }, (_, i) => guess(`g${String(i)}`));
    const { errors } = await query(`mutation { ${aliases.join('\n')} }`);
    expect(checkPassword).toHaveBeenCalledTimes(5);
    expect(errors!.filter(({ message }) => message === 'Too many login attempts.')).toHaveLength(15);
    await query(`mutation { ${guess('g', 'right')} }`);
    expect(checkPassword).toHaveBeenCalledTimes(5);
  });

  test('a right one forgives', async () => {
    for (let i = 0; i < 4; i += 1) await query(`mutation { ${guess('g')} }`);
    expect((await query(`mutation { ${guess('g', 'right')} }`)).data).toEqual({ g: 'welcome' });
    for (let i = 0; i < 5; i += 1) await query(`mutation { ${guess('g')} }`);
    expect(checkPassword).toHaveBeenCalledTimes(10);
  });

  test('requests are limited at the door', async () => {
    const ask = (): Promise<{ status: number }> => reader.ask('/graphql', { json: { query: '{ hello }' } });
    expect(await statuses(121, ask)).toEqual([...times(120, 200), 429]);
  });
});

test('Jobs', async () => {
  const sendMails = jest.fn();
  await reader.run(page.snippet('Jobs'), { sendMails });
  expect(sendMails).toHaveBeenCalledTimes(1);
  // 3 consumed and 7 settled.
  const { remaining } = await createLimiter({ scope: 'mail.user', limit: 100, windowSec: 3600 }).peek(
    'alice',
  );
  expect(remaining).toBe(90);
});
