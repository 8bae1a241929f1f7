import { createHash } from 'node:crypto';
import { createLimiter, MemoryStore, rateLimit, subjectHash } from '../../src/index.js';
import type { Limiter } from '../../src/index.js';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { adminApp, asReader, twoLimiters } from '../support/admin.js';
import { NOON } from '../support/decisions.js';
import { RemoteStore } from '../support/stores.js';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const PAIR = ['a@b.c', '203.0.113.7'] as const;
const OTHER_PAIR = ['a@b.c', '198.51.100.1'] as const;

/** What the tests read of an entry in an answer. */
interface Listed {
  readonly scope: string;
  readonly subjectHash: string;
  readonly totals: object;
  readonly reading: { readonly reason: string };
}

/** Refused once more than the limit, so that the rule's own block begins. */
async function lockOut(limiter: Limiter, subject: string | readonly string[], limit: number): Promise<void> {
  for (let i = 0; i <= limit; i += 1) await limiter.consume(subject);
}

describe('GET /scopes', () => {
  it('shows rules and what became of requests since the start', async () => {
    const [api, login] = twoLimiters() as [Limiter, Limiter];
    const { get } = adminApp({ limiters: [api, login] });
    await lockOut(api, 'alice', 5);
    await api.consume('alice');
    await api.consume('bob');
    await api.peek('bob');
    const { body } = await get('/scopes');
    expect(body.access).toBe('all');
    expect(body.instance).toMatch(new RegExp(`:${String(process.pid)}:[0-9a-f]{6}$`));
    expect(body.scopes).toEqual([
      {
        scope: 'api',
        mode: 'enforce',
        algorithm: 'sliding-window',
        limit: 5,
        windowSec: 60,
        capacity: 5,
        blockSec: [120],
        failMode: 'open',
        degraded: null,
        // Alice: five pass, the sixth starts a block, the seventh meets it. Bob: one.
        totals: { allowed: 6, refused: 2, shadowRefused: 0, blocked: 1, storeErrors: 0 },
      },
      expect.objectContaining({
        scope: 'login.pair',
        totals: { allowed: 0, refused: 0, shadowRefused: 0, blocked: 0, storeErrors: 0 },
      }),
    ]);
    expect((await get('/scopes', asReader)).body.access).toBe('read');
  });

  it('tells what a rule in shadow mode would refuse, and of a refused request counts the rules that refused', async () => {
    const limiter = createLimiter({
      store: new MemoryStore(),
      rules: [
        { scope: 'wide', limit: 100, windowSec: 60 },
        { scope: 'narrow', limit: 1, windowSec: 60 },
        { scope: 'trial', limit: 1, windowSec: 60, mode: 'shadow' },
        { scope: 'gone', limit: 1, windowSec: 60, mode: 'off' },
      ],
    });
    const { get } = adminApp({ limiters: [limiter] });
    for (let i = 0; i < 3; i += 1) await limiter.consume('alice');
    const totals = Object.fromEntries(
      (await get('/scopes')).body.scopes.map(({ scope, totals: t }: Listed) => [scope, t]),
    );
    expect(totals).toMatchObject({
      wide: { allowed: 1, refused: 0 },
      narrow: { allowed: 1, refused: 2 },
      trial: { allowed: 1, refused: 0, shadowRefused: 2 },
      gone: { allowed: 0, refused: 0 },
    });
  });

  it('counts a request once, however many rules it met, and no verdict of a shadow rule as a refusal', async () => {
    const store = new MemoryStore();
    const login = createLimiter({
      store,
      rules: [
        { scope: 'login.ip', limit: 100, windowSec: 60 },
        { scope: 'login.email', limit: 100, windowSec: 60 },
        { scope: 'login.pair', limit: 90, windowSec: 60 },
        { scope: 'login.day', limit: 100, windowSec: 60 },
        { scope: 'login.trial', limit: 10, windowSec: 60, mode: 'shadow' },
      ],
    });
    const trial = createLimiter({ scope: 'trial', limit: 1, windowSec: 60, mode: 'shadow', store });
    const { get } = adminApp({ limiters: [login, trial] });
    for (let i = 0; i < 100; i += 1) {
      await login.consume('alice');
      await trial.consume('alice');
    }
    const { body } = await get('/scopes?recent=1');
    const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
    const { totals, recent } = body.requests;
    expect(totals).toEqual({ allowed: 90, refused: 10 });
    expect([sum(recent.allowed), sum(recent.refused)]).toEqual([90, 10]);
    const shadow = body.scopes.find(({ scope }: Listed) => scope === 'trial');
    expect(shadow.totals).toMatchObject({ allowed: 1, refused: 0, shadowRefused: 99 });
    expect([sum(shadow.recent.refused), sum(shadow.recent.shadowRefused)]).toEqual([0, 99]);
    expect((await get('/scopes')).body.requests).toEqual({ totals });
  });

  it('counts a request that the fail mode decided', async () => {
    const store = new RemoteStore(new MemoryStore(), 0);
    store.behaviour = 'reject';
    const make = (scope: string, failMode: 'open' | 'closed') =>
      createLimiter({ scope, limit: 5, windowSec: 60, store, failMode });
    const limiters = [make('open', 'open'), make('closed', 'closed')];
    const { get } = adminApp({ limiters });
    for (const limiter of limiters) await limiter.consume('alice');
    expect((await get('/scopes')).body.requests.totals).toEqual({ allowed: 1, refused: 1 });
  });

  it('has the last five minutes on request, in steps of two seconds, the present one last', async () => {
    const limiters = twoLimiters();
    const { get } = adminApp({ limiters });
    await lockOut(limiters[0]!, 'alice', 5);
    const { body } = await get('/scopes?recent=1');
    expect(body.stepSec).toBe(2);
    const [{ recent }] = body.scopes;
    expect([recent.allowed.length, recent.refused.length]).toEqual([150, 150]);
    const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);
    // A step may have ended in between, no more than one.
    expect([sum(recent.allowed.slice(-2)), sum(recent.refused.slice(-2))]).toEqual([5, 1]);
    expect(sum(recent.allowed)).toBe(5);
    expect((await get('/scopes')).body.scopes[0].recent).toBeUndefined();
  });

  it('shows rules that live by plans or by a function without numbers', async () => {
    const { get } = adminApp({
      limiters: [
        createLimiter({ scope: 'planned', algorithm: 'token-bucket' }),
        rateLimit({ scope: 'by.request', limit: () => 3, windowSec: 60 }),
      ] as never,
    });
    const { body } = await get('/scopes');
    expect(body.scopes).toMatchObject([
      { scope: 'planned', algorithm: 'token-bucket', limit: null, windowSec: null, blockSec: null },
      { scope: 'by.request', algorithm: 'sliding-window', limit: null },
    ]);
  });

  it('counts a scope of two limiters together, and refuses one that they count in different places', async () => {
    const store = new MemoryStore();
    const make = () => createLimiter({ scope: 'same', limit: 1, windowSec: 60, store });
    const both = [make(), make()];
    const { get } = adminApp({ limiters: [both[0]!, both[1]!, both[0]!] });
    await both[0]!.consume('alice');
    await both[1]!.consume('bob');
    const { body } = await get('/scopes');
    expect(body.scopes).toHaveLength(1);
    expect(body.scopes[0].totals.allowed).toBe(2);
    for (const other of [
      createLimiter({ scope: 'same', limit: 1, windowSec: 60, store: new MemoryStore() }),
      createLimiter({ scope: 'same', limit: 1, windowSec: 60, store, hashSecret: 'x' }),
    ]) {
      expect(() => adminApp({ limiters: [make(), other] })).toThrow(
        expect.objectContaining({ code: 'ERR_LIMITKEEPER_DUPLICATE_SCOPE' }),
      );
    }
  });

  it.each([[[]], [undefined], [{}], [[{}]], [[null]], [['api']]])('is not made of limiters %p', limiters => {
    expect(() => adminApp({ limiters: limiters as never })).toThrow(
      limiters === undefined ? undefined : expect.objectContaining({ option: 'limiters' }),
    );
  });
});

describe('/status', () => {
  const setUp = () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock });
    const limiter = createLimiter({
      store,
      rules: [
        { scope: 'sliding', limit: 5, windowSec: 60, blockSec: 120 },
        { scope: 'bucket', limit: 10, windowSec: 10, algorithm: 'token-bucket' },
        { scope: 'planned', algorithm: 'fixed-window' },
        { scope: 'off', limit: 1, windowSec: 1, mode: 'off' },
      ],
    });
    return { clock, store, limiter, ...adminApp({ limiters: [limiter] }) };
  };

  it('reads one subject in every scope, by key or by hash, and writes nothing', async () => {
    const { clock, store, limiter, get, post } = setUp();
    await limiter.consume('alice', { cost: 3, plan: { planned: { limit: 9, windowSec: 100 } } });
    clock.advance(1000);
    const before = JSON.stringify(store.inspect(sha256('alice')));
    const byKey = await post('/status', { subject: { parts: ['alice'] } });
    const byHash = await get(`/status?hash=${sha256('alice')}`, asReader);
    const inCapitals = await get(`/status?hash=${sha256('alice').toUpperCase()}`);
    expect(byHash.body.readings).toEqual(byKey.body.readings);
    expect(inCapitals.body.readings).toEqual(byKey.body.readings);
    expect(byKey.body.readings).toEqual([
      {
        subjectHash: sha256('alice'),
        scope: 'sliding',
        mode: 'enforce',
        reading: {
          allowed: true,
          reason: 'ok',
          limit: 5,
          remaining: 2,
          retryAfterMs: 0,
          // Three units of the window that began a second ago: they stay until it ends in 59 s, and of the next one the
          // first third (20 s) must pass before another unit fits; it is all over when that one ends.
          moreAfterMs: 79_000,
          resetAfterMs: 119_000,
          windowMs: 60_000,
        },
        block: null,
        strikes: 0,
        counters: [{ algorithm: 'sliding-window', windowSec: 60, used: 3, held: 0 }],
        withoutBlock: null,
      },
      expect.objectContaining({
        scope: 'bucket',
        reading: expect.objectContaining({ remaining: 8 }),
        // A unit a second has leaked.
        counters: [{ algorithm: 'token-bucket', windowSec: 10, used: 2, held: 0 }],
      }),
      expect.objectContaining({
        scope: 'planned',
        reading: null,
        counters: [{ algorithm: 'fixed-window', windowSec: 100, used: 3, held: 0 }],
      }),
      expect.objectContaining({ scope: 'off', mode: 'off', reading: null, counters: [] }),
    ]);
    expect(JSON.stringify(store.inspect(sha256('alice')))).toBe(before);
    expect(store.size).toBe(3);
  });

  it('reads the scope named, and leaves no trace of a stranger', async () => {
    const { store, post } = setUp();
    const { body } = await post('/status', { subject: { parts: ['nobody'] }, scope: 'sliding' });
    expect(body.readings).toMatchObject([{ scope: 'sliding', reading: { remaining: 5 }, counters: [] }]);
    expect(store.size).toBe(0);
  });

  it('shows a block and what of a plan is known while it stands', async () => {
    const { limiter, post } = setUp();
    await limiter.block({ sliding: 'alice', planned: 'alice' }, 30);
    const { body } = await post('/status', { subject: { parts: ['alice'] } });
    const block = { since: NOON, until: NOON + 30_000, manual: true };
    expect(body.readings).toMatchObject([
      { scope: 'sliding', reading: { allowed: false, reason: 'blocked', retryAfterMs: 30_000 }, block },
      { scope: 'bucket', block: null },
      { scope: 'planned', reading: null, block },
      { scope: 'off' },
    ]);
  });
});

describe('what would become of a request without the block', () => {
  it.each<[string, number, object]>([
    ['the counter is used up as well', 5, { allowed: false, reason: 'limit', remaining: 0 }],
    ['the counter has room', 2, { allowed: true, reason: 'ok', remaining: 3, retryAfterMs: 0 }],
  ])('%s', async (_, used, expected) => {
    const limiter = createLimiter({ scope: 'api', limit: 5, windowSec: 60, store: new MemoryStore() });
    const { get, post } = adminApp({ limiters: [limiter] });
    for (let i = 0; i < used; i += 1) await limiter.consume('alice');
    await limiter.block('alice', 600);
    const subject = { parts: ['alice'] };
    expect((await post('/status', { subject })).body.readings[0].withoutBlock).toMatchObject(expected);
    expect((await get('/blocks')).body.blocks[0].withoutBlock).toMatchObject(expected);
    await post('/unblock', { subject });
    expect(await limiter.consume('alice')).toMatchObject({
      allowed: (expected as { allowed: boolean }).allowed,
    });
  });
});

describe('the beginning of a hash', () => {
  it('finds who is blocked, by the twelve digits that lists show, and acts on nobody', async () => {
    const limiter = createLimiter({ scope: 'api', limit: 5, windowSec: 60, store: new MemoryStore() });
    const { get, post } = adminApp({ limiters: [limiter] });
    await limiter.block('alice', 60);
    const digits = sha256('alice').slice(0, 12);
    for (const { body } of [
      await get(`/status?hash=${digits.toUpperCase()}`, asReader),
      await post('/status', { subject: { hash: digits } }),
    ]) {
      expect(body).toMatchObject({ found: 1, readings: [{ subjectHash: sha256('alice'), scope: 'api' }] });
    }
    const none = await get('/status?hash=000000000000');
    expect(none.body).toMatchObject({ found: 0, readings: [], detail: expect.stringMatching(/64 digits/) });
    for (const path of ['/reset', '/unblock']) {
      expect((await post(path, { subject: { hash: digits } })).status).toBe(422);
    }
    expect((await get(`/status?hash=${digits.slice(0, 11)}`)).status).toBe(422);
  });
});

describe('/reset', () => {
  it('forgets a subject everywhere, nobody else, and answers what it removed', async () => {
    const [api, login] = twoLimiters() as [Limiter, Limiter];
    const { post } = adminApp({ limiters: [api, login] });
    await lockOut(api, 'alice', 5);
    await login.consume('alice');
    await api.consume('bob');
    const { body } = await post('/reset', { subject: { parts: ['alice'] } });
    expect(body.removed).toEqual([
      {
        subjectHash: sha256('alice'),
        scope: 'api',
        block: { since: expect.any(Number), until: expect.any(Number), manual: false },
        strikes: 0,
        counters: [{ algorithm: 'sliding-window', windowSec: 60, used: 5, held: 0 }],
      },
      expect.objectContaining({ scope: 'login.pair', block: null }),
    ]);
    expect(await api.peek('alice')).toMatchObject({ allowed: true, remaining: 5 });
    expect(await login.peek('alice')).toMatchObject({ remaining: 2 });
    expect(await api.peek('bob')).toMatchObject({ remaining: 4 });
    expect((await post('/reset', { subject: { parts: ['alice'] } })).body.removed).toEqual([]);
  });

  it('forgets in the scope named only, and never in scopes of others that share the store', async () => {
    const store = new MemoryStore();
    const make = (scope: string) => createLimiter({ scope, limit: 5, windowSec: 60, store });
    const [mine, too, others] = [make('mine'), make('too'), make('others')] as const;
    const { post } = adminApp({ limiters: [mine, too] });
    for (const limiter of [mine, too, others]) await limiter.consume('alice');
    await post('/reset', { subject: { hash: sha256('alice') }, scope: 'mine' });
    expect([(await mine.peek('alice')).remaining, (await too.peek('alice')).remaining]).toEqual([5, 4]);
    await post('/reset', { subject: { hash: sha256('alice') } });
    expect([(await too.peek('alice')).remaining, (await others.peek('alice')).remaining]).toEqual([5, 4]);
  });
});

describe('/block and /unblock', () => {
  it.each([
    ['for seconds', { blockSec: 0.5 }, 500],
    ['for ever', { forever: true }, null],
  ])('blocks %s, and ends it', async (_, duration, ms) => {
    const limiters = twoLimiters();
    const { post } = adminApp({ limiters });
    const subject = { parts: ['alice'] };
    const blocked = (await post('/block', { subject, scope: 'api', ...duration })).body.blocked;
    expect(blocked).toEqual([
      {
        subjectHash: sha256('alice'),
        scope: 'api',
        since: expect.any(Number),
        until: ms === null ? null : expect.any(Number),
        manual: true,
      },
    ]);
    if (ms !== null) expect(blocked[0].until - blocked[0].since).toBe(ms);
    expect(await limiters[0]!.consume('alice')).toMatchObject({ allowed: false, reason: 'blocked' });
    expect((await limiters[1]!.consume('alice')).allowed).toBe(true);
    expect((await post('/unblock', { subject })).body.unblocked).toEqual(blocked);
    expect((await limiters[0]!.consume('alice')).allowed).toBe(true);
    expect((await post('/unblock', { subject })).body.unblocked).toEqual([]);
  });

  it('forgets the strikes of a ladder with the block', async () => {
    const limiter = createLimiter({
      scope: 'ladder',
      limit: 1,
      windowSec: 900,
      blockSec: [60, 3600],
      store: new MemoryStore(),
    });
    const { post } = adminApp({ limiters: [limiter] });
    await lockOut(limiter, 'alice', 1);
    await post('/unblock', { subject: { parts: ['alice'] } });
    await limiter.consume('alice');
    const { body } = await post('/status', { subject: { parts: ['alice'] } });
    const [{ block, strikes }] = body.readings;
    expect([block.until - block.since, strikes]).toEqual([60_000, 1]);
  });

  it('blocks in a scope that is off for nobody, and says so', async () => {
    const limiter = createLimiter({ scope: 'off', limit: 1, windowSec: 1, mode: 'off' });
    const { post } = adminApp({ limiters: [limiter] });
    const reply = await post('/block', { subject: { parts: ['alice'] }, scope: 'off', blockSec: 5 });
    expect([reply.status, reply.body.detail]).toEqual([409, expect.stringMatching(/off/)]);
  });
});

describe('one part of a key', () => {
  const setUp = async (options: object = {}) => {
    const store = new MemoryStore();
    const limiter = createLimiter({
      scope: 'login.pair',
      limit: 2,
      windowSec: 900,
      blockSec: 900,
      store,
      ...options,
    });
    const app = adminApp({ limiters: [limiter, ...twoLimiters().slice(0, 1)] });
    for (const pair of [PAIR, OTHER_PAIR, ['x@y.z', '203.0.113.7']]) await lockOut(limiter, pair, 2);
    await limiter.consume(['a@b.c', '192.0.2.1']);
    return { limiter, ...app };
  };

  it('finds every blocked key that has it, and nobody else', async () => {
    const { post } = await setUp();
    const { body } = await post('/status', { subject: { part: 'a@b.c' } });
    expect(
      body.readings.map(({ subjectHash: hash, scope, reading }: Listed) => [hash, scope, reading.reason]),
    ).toEqual([
      [subjectHash(PAIR), 'login.pair', 'blocked'],
      [subjectHash(OTHER_PAIR), 'login.pair', 'blocked'],
    ]);
    expect(body).toMatchObject({ more: false, unlisted: [] });
    expect(body.found).toBe(2);
    for (const path of ['/status', '/reset', '/unblock'] as const) {
      const none = await post(path, { subject: { part: 'nobody@b.c' } });
      expect(none.status).toBe(200);
      expect(none.body).toMatchObject({ found: 0, more: false, unlisted: [] });
      expect(none.body.detail).toMatch(/^Nobody is blocked with this part\. .*\{ parts: \[\.\.\.\] \}/);
      expect(none.text).not.toContain('nobody@');
      expect([none.body.readings, none.body.removed, none.body.unblocked]).toContainEqual([]);
    }
    const byAddress = await post('/status', { subject: { part: '::ffff:203.0.113.7' } });
    expect(byAddress.body.readings).toHaveLength(2);
  });

  it('frees them all', async () => {
    const { limiter, post } = await setUp();
    const { body } = await post('/unblock', { subject: { part: 'a@b.c' } });
    expect(body.unblocked.map(({ subjectHash: hash }: Listed) => hash)).toEqual([
      subjectHash(PAIR),
      subjectHash(OTHER_PAIR),
    ]);
    expect((await limiter.peek(['x@y.z', '203.0.113.7'])).reason).toBe('blocked');
    expect((await limiter.peek(PAIR)).reason).toBe('limit');
    await post('/block', { subject: { parts: PAIR }, scope: 'login.pair', blockSec: 60 });
    const again = await post('/reset', { subject: { part: 'a@b.c' } });
    expect(again.body.removed).toMatchObject([{ subjectHash: subjectHash(PAIR) }]);
    expect((await limiter.peek(PAIR)).remaining).toBe(2);
  });

  it('is hashed as the limiter does', async () => {
    const { post } = await setUp({ hashSecret: 'pepper' });
    const { body } = await post('/unblock', { subject: { part: 'a@b.c' } });
    expect(body.unblocked.map(({ subjectHash: hash }: Listed) => hash)).toEqual([
      subjectHash(PAIR, 'pepper'),
      subjectHash(OTHER_PAIR, 'pepper'),
    ]);
  });

  it('acts on a thousand at most, and says when there are more', async () => {
    const limiter = createLimiter({ scope: 's', limit: 1, windowSec: 60, store: new MemoryStore() });
    const { post } = adminApp({ limiters: [limiter] });
    for (let i = 0; i < 1001; i += 1) await limiter.block(['office', String(i)], 60);
    const first = await post('/unblock', { subject: { part: 'office' } });
    expect([first.body.unblocked.length, first.body.more]).toEqual([1000, true]);
    const second = await post('/unblock', { subject: { part: 'office' } });
    expect([second.body.unblocked.length, second.body.more]).toEqual([1, false]);
  });
});
