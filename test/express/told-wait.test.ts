import type { Response } from 'express';
import { getRateLimit, MemoryStore, rateLimit } from 'limitkeeper';
import type { RuleOptions } from 'limitkeeper';
import { FakeClock } from 'limitkeeper/testing';
import { call, closeServers, EXPRESSES, serve } from '../support/http.js';
import type { Express, Reply } from '../support/http.js';
import { failures, START } from '../support/limited.js';

afterEach(closeServers);

type Case = readonly [name: string, rule: Partial<RuleOptions>, told: string];

/** Five failures at one moment, the fifth of which starts the block. */
const CASES: readonly Case[] = [
  ['a block that outlasts the window', { algorithm: 'fixed-window', blockSec: 1200 }, '1200'],
  ['a window that outlasts the block', { algorithm: 'fixed-window', blockSec: 60 }, '900'],
  ['the first rung of a ladder', { algorithm: 'fixed-window', blockSec: [60, 3600] }, '900'],
  // In the window after, 5 × (900 − 180) / 900 = 4 still count at 1080 s, and one more fits.
  ['a window that slides on after the block', { algorithm: 'sliding-window', blockSec: 900 }, '1080'],
  ['a log', { algorithm: 'sliding-log', blockSec: 60 }, '900'],
  ['a bucket that drains a unit in 180 s', { algorithm: 'token-bucket', blockSec: 60 }, '180'],
  ['a bucket that has drained by then', { algorithm: 'token-bucket', blockSec: 300 }, '300'],
];

async function app(
  express: Express,
  rule: Partial<RuleOptions>,
): Promise<{ clock: FakeClock; login: (status: number) => Promise<Reply> }> {
  const clock = new FakeClock(START);
  const limit = failures({ store: new MemoryStore({ clock }), ...rule });
  const server = express();
  server.get('/:status', limit, (req, res: Response) => void res.status(Number(req.params.status)).end());
  const url = await serve(server);
  return { clock, login: status => call(`${url}/${String(status)}`) };
}

describe.each(EXPRESSES)(
  '%s: whoever waits as the answer to the last failure says is let in',
  (_name, express) => {
    test.each(CASES)('%s', async (_what, rule, told) => {
      const { clock, login } = await app(express, rule);
      for (let i = 0; i < 4; i += 1) expect((await login(401)).headers['retry-after']).toBeUndefined();
      const { status, headers } = await login(401);
      expect([status, headers['x-ratelimit-remaining'], headers['retry-after']]).toEqual([401, '0', told]);
      expect(headers['x-ratelimit-reset']).toBe(String(START / 1000 + Number(told)));

      clock.advance(Number(told) * 1000);
      expect((await login(200)).status).toBe(200);
    });
  },
);

test.each([
  ['a block for ever', 'forever', undefined],
  ['a block by hand', 60, '60'],
] as const)('%s of the handler is told as it is', async (_what, sec, told) => {
  const [[, express]] = EXPRESSES as [readonly [string, Express]];
  const store = new MemoryStore({ clock: new FakeClock(START) });
  const server = express();
  server.use(rateLimit({ scope: 'login', limit: 5, windowSec: 900, store }), async (req, res) => {
    await getRateLimit(req).scope('login').block(sec);
    res.end();
  });
  const { headers } = await call(await serve(server));
  expect([headers['x-ratelimit-remaining'], headers['retry-after']]).toEqual(['0', told]);
});

test('the reading of a rule that costs nothing keeps the wait of a cost of nothing', async () => {
  const [[, express]] = EXPRESSES as [readonly [string, Express]];
  const store = new MemoryStore({ clock: new FakeClock(START) });
  const numbers = { limit: 5, windowSec: 900, algorithm: 'token-bucket' } as const;
  const server = express();
  // Seven used of five: two leak out in 360 s; a whole unit more would fit after 540 s.
  server.use(rateLimit({ ...numbers, scope: 'free', cost: 0, store }), async (req, res) => {
    await getRateLimit(req).scope('free').charge(7);
    res.end();
  });
  expect((await call(await serve(server))).headers['retry-after']).toBe('360');
});
