import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { NOON } from '../support/decisions.js';
import { limiterOn, limiterWithFaults } from '../support/limiters.js';
import { TcpStore } from '../support/tcp-store.js';
import { blockLoop, countTimers, sleep } from '../support/time.js';

const rule = { scope: 'a', limit: 100_000, windowSec: 86_400 };

describe('no timer is made inside a request', () => {
  test('a thousand decisions of an asynchronous store need one', async () => {
    const { limiter } = limiterWithFaults(rule);
    const timers = await countTimers(async () => {
      for (let i = 0; i < 50; i += 1) {
        await Promise.all(Array.from({ length: 20 }, () => limiter.consume('alice')));
      }
    });
    expect(timers).toBe(1);
    expect(await limiter.peek('alice')).toMatchObject({ remaining: 99_000 });
  });

  test('a thousand of a memory store need none', async () => {
    const limiter = limiterOn(new FakeClock(NOON), rule);
    const timers = await countTimers(async () => {
      for (let i = 0; i < 1000; i += 1) await limiter.consume('alice');
    });
    expect(timers).toBe(0);
  });
});

test('a process that waits for a store alone ends by itself', async () => {
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/fixtures/waiting.ts'], {
    cwd: join(__dirname, '../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
    // The deadline is a minute: a timer that holds the process would show.
    timeout: 40_000,
  });
  let printed = '';
  child.stdout.on('data', chunk => (printed += String(chunk)));
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(printed).toBe('waiting\n');
}, 45_000);

describe('a store in another process', () => {
  let store: TcpStore;
  beforeAll(async () => {
    store = await TcpStore.start();
  }, 30_000);
  afterAll(() => store.stop());

  const TIMEOUT = 250;

  test('is not taken for dead because this process was busy for a second', async () => {
    const limiter = limiterOn(
      new FakeClock(NOON),
      { ...rule, scope: 'busy', storeTimeoutMs: TIMEOUT },
      store,
    );
    const news: string[] = [];
    limiter.on('store-error', ({ error }) => news.push(error.code));
    await limiter.consume('alice');
    for (let i = 0; i < 3; i += 1) {
      const decisions = Array.from({ length: 5 }, () => limiter.consume('alice'));
      // Before the requests leave, while they are under way, and while the replies come in.
      if (i > 0) await new Promise(setImmediate);
      if (i > 1) await sleep(1);
      blockLoop(4 * TIMEOUT);
      expect((await Promise.all(decisions)).every(decision => decision.degraded === undefined)).toBe(true);
    }
    expect(news).toEqual([]);
    expect(await limiter.peek('alice')).toMatchObject({ remaining: 99_984 });
  }, 20_000);

  test('that is frozen costs a deadline now and then, and decides again once it is thawed', async () => {
    const limiter = limiterOn(
      new FakeClock(NOON),
      { ...rule, scope: 'frozen', storeTimeoutMs: TIMEOUT },
      store,
    );
    await limiter.consume('alice');
    store.freeze();
    const before = store.calls;
    const start = performance.now();
    const answers = await Promise.all(Array.from({ length: 5 }, () => limiter.consume('alice')));
    expect(answers.map(({ allowed, degraded }) => [allowed, degraded])).toEqual(
      Array.from({ length: 5 }, () => [true, 'open']),
    );
    expect(performance.now() - start).toBeLessThan(4 * TIMEOUT);
    const suspended = performance.now();
    for (let i = 0; i < 100; i += 1) expect((await limiter.consume('alice')).degraded).toBe('open');
    expect(performance.now() - suspended).toBeLessThan(4 * TIMEOUT);
    expect(store.calls - before).toBeLessThanOrEqual(7);

    store.goOn();
    // The late replies come in, and are thrown away.
    await sleep(1500);
    const back = await limiter.consume('alice');
    expect(back.degraded).toBeUndefined();
    expect((await limiter.consume('alice')).degraded).toBeUndefined();
  }, 20_000);
});
