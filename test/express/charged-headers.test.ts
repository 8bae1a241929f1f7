// L5: X-RateLimit-* show the tightest of the rules that a request was charged to or refused by.
import type { RequestHandler } from 'express';
import { byStatus, getRateLimit, MemoryStore, rateLimit } from 'limitkeeper';
import { apiLimits, loginLimits } from 'limitkeeper/presets';
import type { RateLimitHandler, RuleOptions } from 'limitkeeper';
import { call, closeServers, EXPRESSES, serve } from '../support/http.js';

afterEach(closeServers);

const fixed = { windowSec: 60, algorithm: 'fixed-window' } as const;
const all: RuleOptions = { ...fixed, scope: 'all', limit: 100 };
const failures: RuleOptions = { ...fixed, scope: 'failures', limit: 5, count: 'failures' };
const looking: RuleOptions = { ...failures, strict: false };
const successes: RuleOptions = { ...fixed, scope: 'successes', limit: 7, count: 'successes' };

describe.each(EXPRESSES)('%s', (_name, express) => {
  const of = (...rules: RuleOptions[]): RateLimitHandler =>
    rateLimit({ rules, outcome: byStatus, store: new MemoryStore() });

  async function start(...handlers: RequestHandler[]): Promise<(status?: number) => Promise<string>> {
    const app = express();
    const answer: RequestHandler = (req, res) => void res.status(Number(req.get('X-Answer'))).send('ok');
    app.use(...handlers, answer);
    const url = await serve(app);
    return async (status = 200) => {
      const { headers } = await call(url, { headers: { 'X-Answer': String(status) } });
      return [headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']].join('/');
    };
  }

  test('a good token is told of its own quota, not of that of bad tokens', async () => {
    const app = express();
    app.use(apiLimits({ store: new MemoryStore() }), (_req, res) => res.send('ok'));
    const url = await serve(app);
    const request = { headers: { Authorization: 'Bearer good' } };
    for (let i = 0; i < 50; i += 1) await call(url, request);
    const { headers } = await call(url, request);
    expect(headers).toMatchObject({ 'x-ratelimit-limit': '300', 'x-ratelimit-remaining': '249' });
    expect(headers['ratelimit-policy']).toBe('"api.token_ip";q=300;w=60, "api.invalid_token.ip";q=120;w=60');
  });

  test('a bad token is told of the tighter of the two, and at last refused by it', async () => {
    const app = express();
    app.use(apiLimits({ store: new MemoryStore(), invalidToken: { limit: 3 } }), (_req, res) =>
      res.sendStatus(401),
    );
    const url = await serve(app);
    const told: unknown[] = [];
    for (let i = 0; i < 4; i += 1) {
      const { status, headers } = await call(url, { headers: { Authorization: `Bearer bad-${i}` } });
      told.push([status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]);
    }
    expect(told).toEqual([
      [401, '3', '2'],
      [401, '3', '1'],
      [401, '3', '0'],
      [429, '3', '0'],
    ]);
  });

  test.each([
    ['looks first', looking],
    ['reserves first', failures],
  ])('a rule of failures that %s shows when it was charged', async (_how, rule) => {
    const ask = await start(of(all, rule));
    expect([await ask(), await ask(401), await ask(), await ask(500)]).toEqual([
      '100/99',
      '5/4',
      '100/97',
      '100/96',
    ]);
  });

  test('so does one of successes', async () => {
    const ask = await start(of(all, successes));
    expect([await ask(401), await ask()]).toEqual(['100/99', '7/6']);
  });

  test('where it is the only one it shows as it stands', async () => {
    const ask = await start(of(failures));
    expect([await ask(), await ask(401), await ask()]).toEqual(['5/5', '5/4', '5/4']);
  });

  test.each([
    ['before', true],
    ['behind', false],
  ])('of several limiters, too: %s one that counts', async (_where, first) => {
    const ask = await start(...(first ? [of(looking), of(all)] : [of(all), of(looking)]));
    expect([await ask(), await ask(401), await ask()]).toEqual(['100/99', '5/4', '100/97']);
  });

  test('of two limiters that both wait the tighter shows', async () => {
    const ask = await start(of({ ...failures, limit: 9, scope: 'nine' }), of(failures));
    expect(await ask()).toBe('5/5');
  });

  test('a reservation was charged, and shows', async () => {
    const ask = await start(of(all, { ...fixed, scope: 'work', limit: 50, cost: 10, reserve: true }));
    expect(await ask()).toBe('50/40');
  });

  test('what the handler charges by hand shows', async () => {
    const ask = await start(of(all, failures), async (req, _res, next) => {
      await getRateLimit(req).scope('failures').charge(2);
      next();
    });
    expect(await ask()).toBe('5/3');
  });

  test('getRateLimit(req).decision stays the tightest of all', async () => {
    let seen: unknown;
    const ask = await start(of(all, looking), (req, _res, next) => {
      const { scope, remaining } = getRateLimit(req).decision;
      seen = [scope, remaining];
      next();
    });
    expect(await ask()).toBe('100/99');
    expect(seen).toEqual(['failures', 5]);
  });

  test('the fifth wrong password announces the block, a good login its own quota', async () => {
    const app = express();
    app.use(express.json(), loginLimits({ store: new MemoryStore() }), (req, res) => {
      const { password } = req.body as { password: string };
      res.sendStatus(password === 'right' ? 200 : 401);
    });
    const url = await serve(app);
    const login = async (password: string) => {
      const { status, headers } = await call(url, {
        method: 'POST',
        body: { email: 'a@b.example', password },
      });
      return [status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining'], headers['retry-after']];
    };
    expect(await login('right')).toEqual([200, '25', '24', undefined]);
    for (let i = 0; i < 4; i += 1) await login('wrong');
    expect(await login('wrong')).toEqual([401, '5', '0', '900']);
  });
});
