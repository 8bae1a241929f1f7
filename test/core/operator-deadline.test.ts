import { backendStore, createLimiter } from '../../src/index.js';
import type { Backend, Store } from '../../src/index.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';

const never = (): Promise<never> => new Promise(() => undefined);

/** A store on a connection that is frozen. */
const frozen = (): Store => ({
  decide: never,
  inspect: never,
  reset: never,
  blocked: never,
  clear: never,
  close: never,
});

const frozenBackend = (): Backend => ({
  transact: never,
  list: never,
  listBlocked: never,
  now: never,
  clear: never,
  close: never,
});

const limiterOf = (store: Store, storeTimeoutMs = 250) =>
  createLimiter({ scope: 'a', limit: 5, windowSec: 60, store, storeTimeoutMs });

type Call = () => Promise<unknown>;

const onBackend = (): Record<string, Call> => {
  const store = backendStore(frozenBackend());
  return {
    'inspect of a backend': async () => store.inspect('x'),
    'reset of a backend': async () => store.reset('x'),
    'reset of one scope of a backend': async () => store.reset('x', 'a'),
    'blocked of a backend': async () => store.blocked(),
    'close of a backend': async () => store.close(),
  };
};

const onLimiter = (): Record<string, Call> => {
  const limiter = limiterOf(frozen());
  return {
    'inspect of a limiter': () => limiter.inspect('alice'),
    'forget of a limiter': () => limiter.engine.forget('x', 'a'),
  };
};

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance'] });
});
afterEach(() => {
  jest.useRealTimers();
});

/** How the call stands after so many ms. */
async function after(ms: number, call: Call): Promise<unknown> {
  let state: unknown = 'pending';
  const done = call().then(
    () => (state = 'resolved'),
    (error: unknown) => (state = error),
  );
  void done;
  await jest.advanceTimersByTimeAsync(ms);
  await new Promise(setImmediate);
  return state;
}

const late = (what: string) =>
  expect.objectContaining({
    code: 'ERR_LIMITKEEPER_STORE_TIMEOUT',
    message: expect.stringContaining(what),
  });

describe('W4 every call of an operator ends', () => {
  test.each(Object.keys({ ...onBackend(), ...onLimiter() }))('%s, after five seconds', async name => {
    const call = () => ({ ...onBackend(), ...onLimiter() })[name]!();
    expect(await after(4990, call)).toBe('pending');
    expect(await after(5010, call)).toEqual(late('within 5000 ms'));
  });

  test.each<[string, Call]>([
    ['resetAll', () => limiterOf(frozen()).resetAll()],
    ['clear of a backend', async () => backendStore(frozenBackend()).clear()],
  ])('%s, after a minute', async (_what, call) => {
    expect(await after(59_900, call)).toBe('pending');
    expect(await after(60_010, call)).toEqual(late('within 60000 ms (clear())'));
  });

  test.each([
    [250, 5000],
    [4000, 8000],
  ])(
    'close of a limiter whose store has %d ms, after %d at most, and without an error',
    async (timeoutMs, most) => {
      const limiter = limiterOf(frozen(), timeoutMs);
      void limiter.engine.track(never());
      expect(await after(most - 10, () => limiter.close())).toBe('pending');
      expect(await after(most + 10, () => limiter.close())).toBe('resolved');
    },
  );

  test('while new work keeps coming, too', async () => {
    const limiter = limiterOf(frozen());
    const busy = setInterval(
      () => void limiter.engine.track(new Promise(done => setTimeout(done, 300))),
      100,
    );
    expect(await after(5010, () => limiter.close())).toBe('resolved');
    clearInterval(busy);
  });

  test('an answer ends the wait, and leaves no timer', async () => {
    const limiter = limiterOf(new MemoryStore());
    await limiter.consume('alice');
    expect(await limiter.inspect('alice')).toHaveLength(1);
    await limiter.resetAll();
    await limiter.close();
    expect(jest.getTimerCount()).toBe(0);
  });

  test.each<[string, Store]>([
    ['rejects', { ...frozen(), inspect: () => Promise.reject(new Error('no rights')) }],
    [
      'throws',
      {
        ...frozen(),
        inspect: () => {
          throw new Error('no rights');
        },
      },
    ],
  ])('a store that %s is told with a code, and its own error as the cause', async (_what, store) => {
    await expect(limiterOf(store).inspect('alice')).rejects.toMatchObject({
      code: 'ERR_LIMITKEEPER_STORE',
      message: 'limitkeeper: the store failed: no rights',
      cause: { message: 'no rights' },
    });
    expect(jest.getTimerCount()).toBe(0);
  });
});
