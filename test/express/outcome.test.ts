import type { Request, Response } from 'express';
import { byStatus, MemoryStore, rateLimit } from 'limitkeeper';
import type { RateLimitHandler, RateLimitOptions, RequestOutcome } from 'limitkeeper';
import { call, closeServers, EXPRESSES, pause, serve } from '../support/http.js';
import { failures as fixedFailures } from '../support/limited.js';
import { STORES } from '../support/stores.js';

afterEach(closeServers);

/** In the default algorithm, as most apps have it. */
const failures = (options: Partial<RateLimitOptions> = {}): RateLimitHandler =>
  fixedFailures({ algorithm: 'sliding-window', ...options });

describe.each(EXPRESSES)('%s', (_name, express) => {
  test.each<readonly [status: number, outcome: RequestOutcome]>([
    [200, 'success'],
    [201, 'success'],
    [204, 'success'],
    [299, 'success'],
    [301, 'ignore'],
    [304, 'ignore'],
    [400, 'failure'],
    [401, 'failure'],
    [429, 'failure'],
    [499, 'failure'],
    [500, 'ignore'],
    [503, 'ignore'],
  ])("byStatus: a handler's own %i is %s", async (status, expected) => {
    const seen: RequestOutcome[] = [];
    const app = express();
    app.use(
      failures({
        outcome: (req, res) => {
          seen.push(byStatus(req, res));
          return 'ignore';
        },
      }),
      (_req, res) => res.status(status).end(),
    );
    expect((await call(await serve(app))).status).toBe(status);
    expect(seen).toEqual([expected]);
  });

  test('byStatus: the refusal of any limiter is ignored, whoever asks', async () => {
    const seen: RequestOutcome[] = [];
    const app = express();
    app.use((req, res, next) => {
      res.on('finish', () => seen.push(byStatus(req, res)));
      next();
    });
    app.use(rateLimit({ scope: 'none', limit: 0, windowSec: 1, store: new MemoryStore() }));
    expect((await call(await serve(app))).status).toBe(429);
    expect(seen).toEqual(['ignore']);
  });

  test.each(STORES)(
    '%s: the outcome is asked once, with the final status, and before the answer leaves',
    async (_s, make) => {
      const outcome = jest.fn((_req: Request, res: Response): RequestOutcome => {
        expect([res.statusCode, res.headersSent, res.writableEnded]).toEqual([422, false, false]);
        return 'failure';
      });
      const limiter = failures({ outcome, store: make() });
      const app = express();
      app.use(limiter, (_req, res) => res.status(422).json({ errors: [] }));
      expect((await call(await serve(app))).headers['x-ratelimit-remaining']).toBe('4');
      await pause(10);
      expect(outcome).toHaveBeenCalledTimes(1);
    },
  );

  test('one function decides what counts: here everything but a 422', async () => {
    const limiter = failures({
      outcome: (_req, res) => (res.statusCode >= 400 && res.statusCode !== 422 ? 'failure' : 'ignore'),
    });
    const app = express();
    app.use(limiter, (req, res) => res.status(Number(req.get('X-Answer'))).end());
    const url = await serve(app);
    const left: unknown[] = [];
    for (const status of [422, 500, 422, 400]) {
      const { headers } = await call(url, { headers: { 'X-Answer': String(status) } });
      left.push(headers['x-ratelimit-remaining']);
    }
    expect(left).toEqual(['5', '4', '4', '3']);
  });

  test('two rules, one for failures and one for successes, count apart', async () => {
    const limiter = rateLimit({
      rules: [
        { scope: 'bad', limit: 5, windowSec: 60, keyFn: () => 'alice', count: 'failures' },
        { scope: 'good', limit: 5, windowSec: 60, keyFn: () => 'alice', count: 'successes', strict: false },
      ],
      outcome: byStatus,
      store: new MemoryStore(),
    });
    const app = express();
    app.use(limiter, (req, res) => res.status(Number(req.get('X-Answer'))).end());
    const url = await serve(app);
    for (const status of [401, 401, 200]) await call(url, { headers: { 'X-Answer': String(status) } });
    const { readings } = await limiter.limiter.peek('alice');
    expect(readings.map(({ remaining }) => remaining)).toEqual([3, 4]);
  });
});
