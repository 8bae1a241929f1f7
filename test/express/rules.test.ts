import { byStatus, MemoryStore, rateLimit, subjectHash } from 'limitkeeper';
import type { Plan, RateLimitHandler, RateLimitOptions, RuleOptions } from 'limitkeeper';
import { FakeClock } from 'limitkeeper/testing';
import { call, closeServers, EXPRESSES, pause, serve, statuses, times } from '../support/http.js';

afterEach(closeServers);

/** 2025-12-01T10:43:00.000Z, a whole minute. */
const START = 1_764_585_780_000;

const alice = { windowSec: 60, algorithm: 'fixed-window', keyFn: () => 'alice' } as const;

describe.each(EXPRESSES)('%s', (_name, express) => {
  let clock: FakeClock;
  let store: MemoryStore;
  let limiter: RateLimitHandler;
  let url: string;
  let get: (headers?: Record<string, string>) => ReturnType<typeof call>;

  /** An app whose answer has the status that the header `X-Answer` asks for, and 200 without it. */
  async function start(options: Partial<RateLimitOptions> | { rules: RuleOptions[] }): Promise<void> {
    clock = new FakeClock(START);
    store = new MemoryStore({ clock });
    limiter = rateLimit({ store, outcome: byStatus, ...options } as RateLimitOptions);
    const app = express();
    app.set('trust proxy', 1);
    app.use(limiter, (req, res) => res.status(Number(req.get('X-Answer') ?? 200)).send('ok'));
    url = await serve(app);
    get = (headers = {}) => call(url, { headers });
  }

  const answer = (status: number) => () => get({ 'X-Answer': String(status) });
  const remaining = async (): Promise<number[]> =>
    (await limiter.limiter.peek('alice')).readings.map(reading => reading.remaining);

  test('several rules are one decision: what one refuses, no rule is charged for', async () => {
    await start({
      rules: [
        { ...alice, scope: 'second', limit: 2, windowSec: 1 },
        { ...alice, scope: 'minute', limit: 5 },
      ],
    });
    expect(await statuses(10, () => get())).toEqual([...times(2, 200), ...times(8, 429)]);
    expect(await remaining()).toEqual([0, 3]);
    clock.advance(1000);
    expect(await statuses(3, () => get())).toEqual([200, 200, 429]);
    clock.advance(1000);
    const replies = [await get(), await get()];
    expect(replies.map(({ status }) => status)).toEqual([200, 429]);
    // The minute refuses for 58 s more, the second for none: the longer wait is told, and the trio shows the minute.
    expect(replies[1]?.headers).toMatchObject({
      'retry-after': '58',
      'x-ratelimit-limit': '5',
      'x-ratelimit-remaining': '0',
      'ratelimit-policy': '"second";q=2;w=1, "minute";q=5;w=60',
      ratelimit: '"second";r=1;t=1, "minute";r=0;t=58',
    });
  });

  test('each rule starts its own block, and only the one whose limit is crossed', async () => {
    await start({
      rules: [
        { ...alice, scope: 'tight', limit: 1, blockSec: 300 },
        { ...alice, scope: 'wide', limit: 100, blockSec: 600 },
      ],
    });
    expect(await statuses(2, () => get())).toEqual([200, 429]);
    clock.advance(299_999);
    const reply = await get();
    expect([reply.status, reply.headers['retry-after']]).toEqual([429, '1']);
    clock.advance(1);
    expect((await get()).status).toBe(200);
  });

  test('a block ladder grows with each block', async () => {
    await start({ ...alice, scope: 'x', limit: 1, windowSec: 1, blockSec: [60, 300] });
    const waits: (string | undefined)[] = [];
    for (let i = 0; i < 3; i += 1) {
      expect((await get()).status).toBe(200);
      const refusal = await get();
      waits.push(refusal.headers['retry-after']);
      clock.advance(Number(refusal.headers['retry-after']) * 1000);
    }
    expect(waits).toEqual(['60', '300', '300']);
  });

  test.each([
    ['fixed-window', '60'],
    // Once the window is over, the three of the previous one still count in part: no room for a whole unit before 80 s.
    ['sliding-window', '80'],
    ['sliding-log', '60'],
    ['token-bucket', '20'],
  ] as const)('%s: a client that waits as told (%s s) passes', async (algorithm, told) => {
    await start({ scope: 'x', limit: 3, windowSec: 60, algorithm, keyFn: () => 'alice' });
    expect(await statuses(4, () => get())).toEqual([200, 200, 200, 429]);
    expect((await get()).headers['retry-after']).toBe(told);
    clock.advance(Number(told) * 1000 - 1);
    expect((await get()).status).toBe(429);
    clock.advance(1);
    expect((await get()).status).toBe(200);
  });

  test('leaky-bucket spaces requests evenly, with burst as many at once', async () => {
    await start({ scope: 'x', limit: 60, windowSec: 60, algorithm: 'leaky-bucket', keyFn: () => 'alice' });
    expect(await statuses(2, () => get())).toEqual([200, 429]);
    clock.advance(999);
    expect((await get()).status).toBe(429);
    clock.advance(1);
    expect((await get()).status).toBe(200);
    await start({
      scope: 'x',
      limit: 60,
      windowSec: 60,
      burst: 3,
      algorithm: 'leaky-bucket',
      keyFn: () => 'alice',
    });
    const replies = [await get(), await get(), await get(), await get()];
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    expect(replies[0]?.headers).toMatchObject({
      'x-ratelimit-limit': '3',
      'ratelimit-policy': '"x";q=3;w=3',
    });
  });

  test("align: 'epoch' frees at the multiple of the window, 'first-hit' a window after the first", async () => {
    for (const [align, wait] of [
      ['epoch', '20'],
      ['first-hit', '60'],
    ] as const) {
      await start({ ...alice, scope: 'x', limit: 1, align });
      clock.advance(40_000);
      expect(await statuses(1, () => get())).toEqual([200]);
      expect((await get()).headers['retry-after']).toBe(wait);
    }
  });

  test('a window of half a second frees after half a second', async () => {
    await start({ ...alice, scope: 'x', limit: 1, windowSec: 0.5 });
    expect(await statuses(2, () => get())).toEqual([200, 429]);
    clock.advance(499);
    expect((await get()).status).toBe(429);
    clock.advance(1);
    expect((await get()).status).toBe(200);
  });

  describe('keyFn', () => {
    const from = (address: string) => get({ 'X-Forwarded-For': address });

    test("is the client's address where left out, IPv6 by its /56, mapped IPv4 as IPv4", async () => {
      await start({ scope: 'x', limit: 1, windowSec: 60 });
      expect((await from('203.0.113.7')).status).toBe(200);
      expect((await from('::ffff:203.0.113.7')).status).toBe(429);
      expect((await from('203.0.113.8')).status).toBe(200);
      expect((await from('2001:db8:0:aa01::1')).status).toBe(200);
      expect((await from('2001:db8:0:aaff:1::2')).status).toBe(429);
      expect((await from('2001:db8:0:ab01::1')).status).toBe(200);
    });

    test('ipv6Prefix: 64 tells the networks of a /56 apart', async () => {
      await start({ scope: 'x', limit: 1, windowSec: 60, ipv6Prefix: 64 });
      expect((await from('2001:db8:0:aa01::1')).status).toBe(200);
      expect((await from('2001:db8:0:aa01:ffff::1')).status).toBe(429);
      expect((await from('2001:db8:0:aa02::1')).status).toBe(200);
    });

    test('an address that a keyFn returns is treated the same, also as a part', async () => {
      await start({ scope: 'x', limit: 1, windowSec: 60, keyFn: req => ['a@b.c', req.ip ?? ''] });
      expect((await from('2001:db8:0:aa01::1')).status).toBe(200);
      expect((await from('2001:db8:0:aa02::1')).status).toBe(429);
    });

    test('hashSecret changes the hash under which the subject is stored', async () => {
      await start({ ...alice, scope: 'x', limit: 1, hashSecret: 'pepper' });
      await get();
      expect(store.inspect(subjectHash('alice'))).toEqual([]);
      expect(store.inspect(subjectHash('alice', 'pepper'))).toHaveLength(1);
    });

    test('numbers count as their decimal text', async () => {
      const keys: (string | number | bigint)[] = [42, '42', 42n];
      await start({ scope: 'x', limit: 2, windowSec: 60, keyFn: () => keys.shift() ?? '' });
      expect(await statuses(3, () => get())).toEqual([200, 200, 429]);
    });
  });

  describe('when', () => {
    test.each([
      ['at once', (no: boolean) => !no],
      ['as a promise', async (no: boolean) => !no],
    ])('false (%s) leaves the rule out of this request, and out of its headers', async (_how, when) => {
      await start({
        rules: [
          { ...alice, scope: 'writes', limit: 1, when: req => when(req.get('X-Read') !== undefined) },
          { ...alice, scope: 'all', limit: 10 },
        ],
      });
      expect(await statuses(3, () => get({ 'X-Read': '1' }))).toEqual(times(3, 200));
      expect((await get({ 'X-Read': '1' })).headers['ratelimit-policy']).toBe('"all";q=10;w=60');
      expect(await statuses(2, () => get())).toEqual([200, 429]);
    });

    test('with no rule left the request passes without headers', async () => {
      await start({ ...alice, scope: 'x', limit: 0, when: () => false });
      const { status, headers } = await get();
      expect([status, headers['x-ratelimit-limit'], headers['ratelimit-policy']]).toEqual([
        200,
        undefined,
        undefined,
      ]);
    });

    test('asks nothing else of a rule that it leaves out', async () => {
      const keyFn = jest.fn(() => 'alice');
      await start({ scope: 'x', limit: 1, windowSec: 60, when: () => false, keyFn, cost: () => NaN });
      expect((await get()).status).toBe(200);
      expect(keyFn).not.toHaveBeenCalled();
    });
  });

  describe('plan', () => {
    const PLANS: Record<string, Plan | 'unlimited'> = {
      free: { limit: 2, windowSec: 60 },
      pro: { limit: 3, windowSec: 3600, blockSec: 600 },
      enterprise: 'unlimited',
    };

    test.each([
      ['at once', (name: string) => PLANS[name]],
      ['as a promise', async (name: string) => PLANS[name]],
    ])('%s: limit, window and block come with each request, and may be unlimited', async (_how, planOf) => {
      await start({
        scope: 'tariff',
        algorithm: 'fixed-window',
        plan: req => planOf(req.get('X-Plan') ?? '') as Plan,
        keyFn: req => req.get('X-Plan') ?? '',
      });
      const free = () => get({ 'X-Plan': 'free' });
      const pro = () => get({ 'X-Plan': 'pro' });
      expect(await statuses(3, free)).toEqual([200, 200, 429]);
      expect(await statuses(4, pro)).toEqual([200, 200, 200, 429]);
      expect((await free()).headers).toMatchObject({ 'retry-after': '60', 'x-ratelimit-limit': '2' });
      // The block of ten minutes ends before the window of an hour does.
      expect((await pro()).headers).toMatchObject({ 'retry-after': '3600', 'x-ratelimit-limit': '3' });
      expect(await statuses(20, () => get({ 'X-Plan': 'enterprise' }))).toEqual(times(20, 200));
      expect((await get({ 'X-Plan': 'enterprise' })).headers['x-ratelimit-limit']).toBeUndefined();
    });

    test('burst belongs to it, where the algorithm has one', async () => {
      await start({
        scope: 'x',
        algorithm: 'token-bucket',
        keyFn: () => 'alice',
        plan: () => ({ limit: 60, windowSec: 60, burst: 2 }),
      });
      expect(await statuses(3, () => get())).toEqual([200, 200, 429]);
    });
  });

  test.each([
    ['at once', (n: number) => n],
    ['as a promise', async (n: number) => n],
  ])('limit as a function (%s) is asked for each request', async (_how, give) => {
    await start({ ...alice, scope: 'x', limit: req => give(req.get('X-Pro') === undefined ? 1 : 3) });
    expect(await statuses(2, () => get())).toEqual([200, 429]);
    expect(await statuses(3, () => get({ 'X-Pro': '1' }))).toEqual([200, 200, 429]);
  });

  describe('cost', () => {
    test('is taken whole or not at all', async () => {
      await start({ ...alice, scope: 'x', limit: 10, cost: 4 });
      expect(await statuses(3, () => get())).toEqual([200, 200, 429]);
      expect(await remaining()).toEqual([2]);
    });

    test.each([
      ['at once', (n: number) => n],
      ['as a promise', async (n: number) => n],
    ])('each rule has its own (%s)', async (_how, give) => {
      await start({
        rules: [
          { ...alice, scope: 'requests', limit: 10 },
          { ...alice, scope: 'items', limit: 10, cost: req => give(Number(req.get('X-Items'))) },
        ],
      });
      expect((await get({ 'X-Items': '7' })).status).toBe(200);
      const reply = await get({ 'X-Items': '4' });
      expect([reply.status, reply.headers['x-ratelimit-remaining']]).toEqual([429, '3']);
      expect((await get({ 'X-Items': '3' })).status).toBe(200);
      expect((await get({ 'X-Items': '0' })).status).toBe(200);
      expect(await remaining()).toEqual([7, 0]);
    });
  });

  describe('mode', () => {
    test("'shadow' counts, blocks and reports, and refuses nobody; its headers are not shown", async () => {
      await start({
        rules: [
          { ...alice, scope: 'new', limit: 2, blockSec: 300, mode: 'shadow' },
          { ...alice, scope: 'old', limit: 10 },
        ],
      });
      const told: string[] = [];
      limiter.limiter.on('shadow-refused', ({ scope, reading }) => told.push(`${scope} ${reading.reason}`));
      limiter.limiter.on('blocked', ({ scope }) => told.push(`${scope} begins`));
      const replies = [await get(), await get(), await get(), await get()];
      expect(replies.map(({ status }) => status)).toEqual(times(4, 200));
      expect(told).toEqual(['new begins', 'new limit', 'new blocked']);
      expect(replies[3]?.headers['ratelimit-policy']).toBe('"old";q=10;w=60');
    });

    test("'shadow' charges at the end only what it would have let pass, as 'enforce' does", async () => {
      const shadow = {
        ...alice,
        scope: 'x',
        limit: 2,
        mode: 'shadow',
        count: 'failures',
        blockSec: 900,
      } as const;
      for (const strict of [true, false]) {
        await start({ ...shadow, strict });
        expect(await statuses(4, answer(401))).toEqual(times(4, 401));
        const [cell] = await limiter.limiter.inspect('alice');
        expect([strict, cell?.cell.counters[0]?.state, cell?.cell.block?.since]).toEqual([
          strict,
          [START, 2],
          START,
        ]);
      }
      await start({ ...shadow, count: 'all', reserve: true, blockSec: 0, resetOnSuccess: true });
      await limiter.limiter.charge('alice', 2);
      expect(await statuses(2, answer(200))).toEqual(times(2, 200));
      expect(await remaining()).toEqual([0]);
    });

    test("'off' is absent: nothing counted, nothing asked, nothing told", async () => {
      const keyFn = jest.fn(() => 'alice');
      await start({ scope: 'x', limit: 0, windowSec: 60, mode: 'off', keyFn });
      const { status, headers } = await get();
      expect([status, headers['x-ratelimit-limit'], store.size, keyFn.mock.calls.length]).toEqual([
        200,
        undefined,
        0,
        0,
      ]);
    });
  });

  describe('count', () => {
    test.each<readonly [RuleOptions['count'], boolean, readonly number[], number]>([
      ['failures', true, [401, 200, 302, 500, 404], 2],
      ['failures', false, [401, 200, 302, 500, 404], 2],
      ['successes', true, [401, 200, 302, 204, 404], 2],
      ['successes', false, [401, 200, 302, 204, 404], 2],
      ['all', true, [401, 200, 302, 204, 404], 5],
    ])('%s, strict %p: of %p %i count', async (count, strict, answers, counted) => {
      await start({
        ...alice,
        scope: 'x',
        limit: 10,
        count,
        ...(count === 'all' ? {} : { strict }),
      } as never);
      for (const status of answers) expect((await answer(status)()).status).toBe(status);
      expect(await remaining()).toEqual([10 - counted]);
    });

    test('a failure costs what the rule says', async () => {
      await start({ ...alice, scope: 'x', limit: 10, count: 'failures', cost: 3 });
      expect((await answer(401)()).headers['x-ratelimit-remaining']).toBe('7');
      expect((await answer(200)()).headers['x-ratelimit-remaining']).toBe('7');
    });

    test('strict: false looks first and charges afterwards: the last one may overshoot, the next is refused', async () => {
      await start({ ...alice, scope: 'x', limit: 4, count: 'failures', cost: 3, strict: false });
      const replies = [await answer(401)(), await answer(401)()];
      expect(replies.map(({ status }) => status)).toEqual([401, 429]);
      expect(replies.map(({ headers }) => headers['x-ratelimit-remaining'])).toEqual(['1', '1']);
    });

    test('resetOnSuccess forgives counter and strikes of this rule alone', async () => {
      await start({
        rules: [
          { ...alice, scope: 'login', limit: 5, count: 'failures', resetOnSuccess: true },
          { ...alice, scope: 'slow', limit: 50, count: 'failures' },
        ],
      });
      expect(await statuses(4, answer(401))).toEqual(times(4, 401));
      expect(await remaining()).toEqual([1, 46]);
      const reply = await answer(200)();
      expect(reply.headers['ratelimit']).toBe('"login";r=5, "slow";r=46;t=60');
      expect(await remaining()).toEqual([5, 46]);
    });

    test('resetOnSuccess also where every request counts', async () => {
      await start({ ...alice, scope: 'x', limit: 5, resetOnSuccess: true });
      await statuses(3, answer(401));
      expect(await remaining()).toEqual([2]);
      await answer(200)();
      expect(await remaining()).toEqual([5]);
    });
  });

  describe('reserve', () => {
    test('where the handler does not settle, the estimate is charged at the end', async () => {
      await start({ ...alice, scope: 'x', limit: 1000, cost: 800, reserve: true });
      expect((await get()).headers['x-ratelimit-remaining']).toBe('200');
      const reply = await get();
      expect([reply.status, reply.headers['retry-after']]).toEqual([429, '60']);
    });

    test('holds its units while the handler runs, and holdSec says for how long at most', async () => {
      clock = new FakeClock(START);
      store = new MemoryStore({ clock });
      const app = express();
      let first = true;
      app.use(
        rateLimit({ ...alice, scope: 'x', limit: 10, cost: 6, reserve: true, holdSec: 5, store }),
        (_req, res) => {
          if (first) first = false;
          else res.send('ok');
        },
      );
      url = await serve(app);
      const never = call(url).catch(() => 'cut');
      await pause(30);
      const refusal = await call(url);
      expect([refusal.status, refusal.headers['retry-after']]).toEqual([429, '1']);
      // Twice the hold at most: it was made at a multiple of five seconds.
      clock.advance(9999);
      expect((await call(url)).status).toBe(429);
      clock.advance(1);
      expect((await call(url)).status).toBe(200);
      await closeServers();
      expect(await never).toBe('cut');
    });
  });
});
