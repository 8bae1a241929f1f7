import { Agent } from 'node:http';
import { MemoryStore, rateLimit } from 'limitkeeper';
import type { RateLimitHandler, RateLimitOptions } from 'limitkeeper';
import { FakeClock } from 'limitkeeper/testing';
import {
  Gate,
  call,
  closeServers,
  EXPRESSES,
  serve,
  statuses,
  tally,
  times,
  together,
} from '../support/http.js';
import type { Reply } from '../support/http.js';
import { failures } from '../support/limited.js';
import { STORES } from '../support/stores.js';

afterEach(closeServers);

describe.each(EXPRESSES)('%s', (_name, express) => {
  describe.each(STORES)('with %s', (_s, makeStore) => {
    let reached: number;

    /**
     * So many requests at once. The handlers answer when every request has reached one or has been refused, so that all
     * of them are under way together, however slow the machine is.
     */
    async function rush(
      limiter: RateLimitHandler,
      count: number,
      status: (i: number) => number = () => 200,
    ): Promise<{ replies: Reply[]; url: string }> {
      reached = 0;
      let refused = 0;
      const gate = new Gate();
      const arrived = () => {
        if (reached + refused >= count) gate.open();
      };
      const app = express();
      app.use((_req, res, next) => {
        res.on('finish', () => {
          if (res.statusCode === 429) refused += 1;
          arrived();
        });
        next();
      });
      app.use(limiter, async (req, res) => {
        reached += 1;
        arrived();
        await gate.passed;
        res.status(Number(req.get('X-Answer'))).send('ok');
      });
      const url = await serve(app);
      const replies = await together(count, i => call(url, { headers: { 'X-Answer': String(status(i)) } }));
      return { replies, url };
    }

    const login = (options: Partial<RateLimitOptions> = {}): RateLimitHandler =>
      // Two hundred requests at once may take their time on a busy machine.
      failures({ blockSec: 900, store: makeStore(), storeTimeoutMs: 5000, ...options });

    test.each(['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket'] as const)(
      '200 parallel requests against a %s of 50: exactly 50 are admitted',
      async algorithm => {
        const limiter = rateLimit({
          scope: 'api.ip',
          limit: 50,
          windowSec: 3600,
          algorithm,
          store: makeStore(new FakeClock(1_764_585_780_000)),
          storeTimeoutMs: 5000,
        });
        const { replies } = await rush(limiter, 200);
        expect(tally(replies)).toEqual({ 200: 50, 429: 150 });
        expect(reached).toBe(50);
      },
    );

    test('of 100 parallel wrong passwords five reach the handler, and the block begins with the fifth', async () => {
      const limiter = login();
      const { replies } = await rush(limiter, 100, () => 401);
      expect(tally(replies)).toEqual({ 401: 5, 429: 95 });
      expect(reached).toBe(5);
      expect((await limiter.limiter.peek('alice')).reason).toBe('blocked');
      const announced = replies.filter(
        ({ status, headers }) => status === 401 && Number(headers['retry-after']) > 890,
      );
      expect(announced.length).toBeGreaterThanOrEqual(1);
    });

    test('of 50 parallel good logins five pass, the others are told to come back in a second, and nobody is blocked', async () => {
      const limiter = login();
      const { replies, url } = await rush(limiter, 50);
      expect(tally(replies)).toEqual({ 200: 5, 429: 45 });
      for (const { status, headers } of replies) {
        expect(headers['retry-after']).toBe(status === 429 ? '1' : undefined);
      }
      expect(await limiter.limiter.peek('alice')).toMatchObject({ allowed: true, remaining: 5 });
      expect((await call(url, { headers: { 'X-Answer': '200' } })).status).toBe(200);
    });

    test('with strict: false all 50 pass', async () => {
      const limiter = login({ strict: false });
      const { replies } = await rush(limiter, 50);
      expect(tally(replies)).toEqual({ 200: 50 });
      expect((await limiter.limiter.peek('alice')).remaining).toBe(5);
    });

    test('with strict: false parallel failures are charged when they are known, and then it is shut', async () => {
      const { replies, url } = await rush(login({ strict: false }), 20, () => 401);
      expect(tally(replies)).toEqual({ 401: 20 });
      expect(await statuses(3, () => call(url))).toEqual(times(3, 429));
    });

    test('good and bad at once: each bad one is charged, no good one is', async () => {
      const limiter = login({ limit: 100 });
      await rush(limiter, 40, i => (i % 4 === 0 ? 401 : 200));
      expect((await limiter.limiter.peek('alice')).remaining).toBe(90);
    });

    test('parallel reservations never pass more than fits, and what is settled frees the rest', async () => {
      const limiter = rateLimit({
        scope: 'tokens',
        limit: 1000,
        windowSec: 3600,
        algorithm: 'fixed-window',
        cost: 300,
        reserve: true,
        keyFn: () => 'alice',
        store: makeStore(),
        storeTimeoutMs: 5000,
      });
      const { replies } = await rush(limiter, 10);
      expect(tally(replies)).toEqual({ 200: 3, 429: 7 });
      expect((await limiter.limiter.peek('alice')).remaining).toBe(100);
    });
  });

  test('an address that sends 1,000 invented bearer values in a row is refused from the 121st', async () => {
    const store = new MemoryStore({ clock: new FakeClock(1_764_585_780_000) });
    const app = express();
    app.use(
      rateLimit({
        scope: 'api.invalid_token.ip',
        limit: 120,
        windowSec: 60,
        blockSec: 120,
        algorithm: 'fixed-window',
        count: 'failures',
        strict: false,
        outcome: (_req, res) => (res.statusCode === 401 ? 'failure' : 'ignore'),
        store,
      }),
      // What alone would give each invented value a fresh quota.
      rateLimit({
        scope: 'api.token_ip',
        limit: 300,
        windowSec: 60,
        blockSec: 120,
        keyFn: req => [req.get('Authorization') ?? '', req.ip ?? ''],
        store,
      }),
      (_req, res) => res.status(401).json({ error: 'invalid_token' }),
    );
    const url = await serve(app);
    const agent = new Agent({ keepAlive: true });
    const seen = await statuses(1000, i =>
      call(url, { agent, headers: { Authorization: `Bearer ${String(i)}-invented` } }),
    );
    agent.destroy();
    expect(seen).toEqual([...times(120, 401), ...times(880, 429)]);
  }, 30_000);
});
