import type supertest from 'supertest';
import { createLimiter, MemoryStore } from '../../src/index.js';
import type { Check, Store } from '../../src/index.js';
import { adminApp } from '../support/admin.js';
import type { AdminApp } from '../support/admin.js';

/** A store whose connection is gone: every method rejects, or never answers. */
function broken(
  inner: MemoryStore,
  how: 'rejects' | 'hangs',
): Store & { how: 'rejects' | 'hangs' | 'works' } {
  const store: { how: 'rejects' | 'hangs' | 'works' } = { how };
  const call = <T>(work: () => T): Promise<T> => {
    if (store.how === 'rejects') return Promise.reject(new Error('connect ECONNREFUSED 127.0.0.1:6379'));
    return store.how === 'hangs' ? new Promise(() => {}) : Promise.resolve().then(work);
  };
  return Object.assign(store, {
    decide: (checks: readonly Check[]) => call(() => inner.decide(checks)),
    inspect: (hash: string) => call(() => inner.inspect(hash)),
    reset: (hash: string, scope?: string) => call(() => inner.reset(hash, scope)),
    blocked: (query?: object) => call(() => inner.blocked(query)),
    clear: () => call(() => inner.clear()),
    close: () => call(() => inner.close()),
  });
}

const ALICE = { subject: { parts: ['alice'] } };
const ACTIONS: [string, (app: AdminApp) => supertest.Test][] = [
  ['POST /status', ({ post }) => post('/status', ALICE)],
  ['POST /reset', ({ post }) => post('/reset', ALICE)],
  ['POST /block', ({ post }) => post('/block', { ...ALICE, scope: 'api', blockSec: 5 })],
  ['POST /unblock', ({ post }) => post('/unblock', ALICE)],
  ['GET /blocks', ({ get }) => get('/blocks')],
  ['POST /unblock by part', ({ post }) => post('/unblock', { subject: { part: 'alice' } })],
];

describe.each(['open', 'closed', 'local'] as const)('with failMode %s', failMode => {
  const setUp = (how: 'rejects' | 'hangs') => {
    const store = broken(new MemoryStore(), how);
    const limiter = createLimiter({
      scope: 'api',
      limit: 5,
      windowSec: 60,
      store,
      failMode,
      storeTimeoutMs: 20,
    });
    return { store, limiter, app: adminApp({ limiters: [limiter] }) };
  };

  it.each(ACTIONS)('%s answers 503 when the store is gone, and says why', async (_, act) => {
    const { app } = setUp('rejects');
    const reply = await act(app);
    expect([reply.status, reply.headers['content-type'], reply.headers['retry-after']]).toEqual([
      503,
      'application/problem+json',
      '1',
    ]);
    expect(reply.body.detail).toMatch(/store/);
    expect(reply.text).not.toContain('alice');
  });

  it('GET /scopes answers all the same, and shows it', async () => {
    const { app, limiter } = setUp('rejects');
    await limiter.consume('alice');
    const { body } = await app.get('/scopes');
    expect(body.scopes[0]).toMatchObject({ failMode, degraded: failMode, totals: { storeErrors: 1 } });
  });

  it('a reset reaches the local store too: what was forgiven does not come back with the next outage', async () => {
    const { app, store, limiter } = setUp('rejects');
    for (let i = 0; i < 6; i += 1) await limiter.consume('alice');
    // The breaker leaves a store that failed five times alone for a second.
    store.how = 'works';
    await new Promise(done => setTimeout(done, 1050));
    expect((await app.post('/reset', ALICE)).status).toBe(200);
    store.how = 'rejects';
    const { allowed, remaining, degraded } = await limiter.consume('alice');
    expect({ allowed, remaining, degraded }).toEqual(
      {
        open: { allowed: true, remaining: null, degraded: 'open' },
        closed: { allowed: false, remaining: null, degraded: 'closed' },
        local: { allowed: true, remaining: 4, degraded: 'local' },
      }[failMode],
    );
  });
});

it('waits for a store that hangs no longer than five seconds', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance', 'Date'] });
  try {
    const { ask } = await import('../../src/http/deadline.js');
    const asked = ask(() => new Promise(() => {}));
    const outcome = expect(asked).rejects.toMatchObject({ reply: { status: 503 } });
    await jest.advanceTimersByTimeAsync(4999);
    expect(jest.getTimerCount()).toBe(1);
    await jest.advanceTimersByTimeAsync(1);
    await outcome;
    expect(jest.getTimerCount()).toBe(0);
    // One that answers leaves no timer behind.
    await ask(() => Promise.resolve('an answer'));
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});
