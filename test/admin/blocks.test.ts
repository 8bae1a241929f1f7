import { createHash } from 'node:crypto';
import { backendStore, createLimiter, MemoryStore } from '../../src/index.js';
import type { Store } from '../../src/index.js';
import type { BlockQuery } from '../../src/core/store.js';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { adminApp, asReader } from '../support/admin.js';
import type { AdminApp } from '../support/admin.js';
import { NOON } from '../support/decisions.js';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** What the tests read of a row. */
interface Row {
  readonly subjectHash: string;
  readonly scope: string;
  readonly since: number;
  readonly until: number | null;
}

/** Every page, and what each said of the whole. */
async function pagesOf({ get }: AdminApp, query: string) {
  const rows: Row[] = [];
  const told: { total: number; before: number }[] = [];
  for (let cursor = ''; ;) {
    const { body } = await get(`/blocks?${query}${cursor}`);
    rows.push(...body.blocks);
    told.push({ total: body.total, before: body.before });
    if (body.cursor === undefined) return { rows, told };
    cursor = `&cursor=${encodeURIComponent(body.cursor)}`;
  }
}

const named = (scope: string, i: number) => `${scope} ${sha256(`${scope}${String(i)}`)}`;
const names = (rows: readonly Row[]) => rows.map(({ scope, subjectHash }) => `${scope} ${subjectHash}`);

describe('GET /blocks', () => {
  it('lists newest first in page after page, over every store, with a true count, and no scope of others', async () => {
    const clock = new FakeClock(NOON);
    const shared = new MemoryStore({ clock });
    const make = (scope: string, store: MemoryStore) =>
      createLimiter({ scope, limit: 1, windowSec: 60, store });
    const [a, others, b] = [
      make('a', shared),
      make('others', shared),
      make('b', new MemoryStore({ clock })),
    ] as const;
    const app = adminApp({ limiters: [a, b] });
    for (let i = 0; i < 7; i += 1) {
      await a.block(`a${String(i)}`, 60);
      clock.advance(1);
      await others.block(`others${String(i)}`, 60);
      await b.block(`b${String(i)}`, i === 0 ? 'forever' : 60);
      clock.advance(1);
    }
    const { rows, told } = await pagesOf(app, 'count=3');
    expect(names(rows)).toEqual([6, 5, 4, 3, 2, 1, 0].flatMap(i => [named('b', i), named('a', i)]));
    expect(told).toEqual([0, 3, 6, 9, 12].map(before => ({ total: 14, before })));
    expect(rows.filter(({ until }) => until === null).map(({ subjectHash }) => subjectHash)).toEqual([
      sha256('b0'),
    ]);
    const only = await app.get('/blocks?scope=b', asReader);
    expect(only.body).toMatchObject({ total: 7, complete: true, unlisted: [] });
    // What stands in every scope, so that a filter can name them.
    expect(new Set(only.body.counts)).toEqual(
      new Set(['a', 'b'].map(scope => ({ scope, mode: 'enforce', blocked: 7 }))),
    );
    expect(only.body.blocks[1]).toEqual({
      subjectHash: sha256('b5'),
      scope: 'b',
      mode: 'enforce',
      since: NOON + 11,
      until: NOON + 11 + 60_000,
      manual: true,
      withoutBlock: { allowed: true, reason: 'ok', remaining: 1, retryAfterMs: 0 },
    });
  });

  it('goes on behind the place where a page ended, though newer blocks came and that one went', async () => {
    const clock = new FakeClock(NOON);
    const limiter = createLimiter({ scope: 'a', limit: 1, windowSec: 60, store: new MemoryStore({ clock }) });
    const { get } = adminApp({ limiters: [limiter] });
    for (let i = 0; i < 6; i += 1) {
      await limiter.block(`a${String(i)}`, 600);
      clock.advance(1);
    }
    const { body } = await get('/blocks?count=2');
    await limiter.unblock('a4');
    await limiter.block('a9', 600);
    const next = await get(`/blocks?count=2&cursor=${String(body.cursor)}`);
    expect(names(next.body.blocks)).toEqual([named('a', 3), named('a', 2)]);
    expect(next.body).toMatchObject({ total: 6, before: 2 });
  });

  it('leaves out, and counts out, what has ended since the lists were read', async () => {
    const inner = new MemoryStore();
    const limiter = createLimiter({ scope: 'a', limit: 1, windowSec: 60, store: inner });
    for (const name of ['x', 'y']) await limiter.block(name, 60);
    const { blocked } = inner;
    inner.blocked = query => {
      const page = blocked.call(inner, query);
      void inner.reset(sha256('x'));
      return page;
    };
    const { body } = await adminApp({ limiters: [limiter] }).get('/blocks');
    expect(names(body.blocks)).toEqual([`a ${sha256('y')}`]);
    expect(body.total).toBe(1);
  });

  it('reads 50,000 blocks at most, says so, and reads once for all who ask while that takes long', async () => {
    const inner = new MemoryStore();
    let asked = 0;
    const endless: Store = Object.assign(Object.create(inner) as MemoryStore, {
      decide: inner.decide.bind(inner),
      inspect: inner.inspect.bind(inner),
      blocked: async ({ cursor = '0', count = 100 }: BlockQuery = {}) => {
        asked += 1;
        await new Promise(done => setTimeout(done, 1));
        const from = Number(cursor);
        return {
          blocks: Array.from({ length: count }, (_, i) => ({
            subjectHash: sha256(String(from + i)),
            scope: 'a',
            since: NOON + from + i,
            until: null,
            manual: false,
          })),
          cursor: String(from + count),
        };
      },
    });
    const { get } = adminApp({
      limiters: [createLimiter({ scope: 'a', limit: 1, windowSec: 60, store: endless })],
    });
    const answers = await Promise.all([1, 2, 3].map(() => get('/blocks?count=1')));
    answers.push(await get('/blocks?count=1'));
    expect(asked).toBe(100);
    for (const { body } of answers) expect(body.complete).toBe(false);
    expect(answers[0]!.body.counts).toEqual([{ scope: 'a', mode: 'enforce', blocked: 50_000 }]);
  });

  it('does not keep a failure, however long it took', async () => {
    const inner = new MemoryStore();
    const { blocked } = inner;
    inner.blocked = (async () => {
      await new Promise(done => setTimeout(done, 60));
      throw new Error('connect ECONNREFUSED');
    }) as never;
    const { get } = adminApp({
      limiters: [createLimiter({ scope: 'a', limit: 1, windowSec: 60, store: inner })],
    });
    expect((await get('/blocks')).status).toBe(503);
    inner.blocked = blocked;
    expect((await get('/blocks')).status).toBe(200);
  });

  it('is read anew after what an operator has done, however long the last reading took', async () => {
    const inner = new MemoryStore();
    const limiter = createLimiter({ scope: 'a', limit: 1, windowSec: 60, store: inner });
    const { blocked } = inner;
    inner.blocked = (async (query: BlockQuery) => {
      await new Promise(done => setTimeout(done, 60));
      return blocked.call(inner, query);
    }) as never;
    const { get, post } = adminApp({ limiters: [limiter] });
    const total = async () => (await get('/blocks')).body.total;
    await limiter.block('x', 60);
    expect(await total()).toBe(1);
    await post('/block', { subject: { parts: ['y'] }, scope: 'a', blockSec: 60 });
    expect(await total()).toBe(2);
    await post('/unblock', { subject: { parts: ['y'] } });
    expect(await total()).toBe(1);
  });

  it('says which scopes a store cannot list', async () => {
    const cells = new Map<string, never>();
    const plain = backendStore({
      transact: async (_keys, body) => body([undefined], 1000).result,
      list: async () => [...cells.values()],
      now: () => 1000,
      clear: async () => undefined,
      close: async () => undefined,
    });
    const { get, post } = adminApp({
      limiters: [
        createLimiter({ scope: 'listed', limit: 1, windowSec: 60, store: new MemoryStore() }),
        createLimiter({ scope: 'unlisted', limit: 1, windowSec: 60, store: plain }),
      ],
    });
    expect((await get('/blocks')).body).toMatchObject({ blocks: [], total: 0, unlisted: ['unlisted'] });
    expect((await get('/blocks?scope=listed')).body.unlisted).toEqual([]);
    expect((await post('/unblock', { subject: { part: 'x' } })).body).toEqual({
      unblocked: [],
      found: 0,
      detail: expect.stringMatching(/as far as the stores list blocks/),
      more: false,
      unlisted: ['unlisted'],
    });
    expect((await post('/unblock', { subject: { parts: ['x'] } })).body.unlisted).toEqual([]);
  });
});
