import { AsyncLocalStorage } from 'node:async_hooks';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { Deadlines, Pending } from '../../src/core/deadline.js';
import type { EventName, FailMode } from '../../src/core/events.js';
import type { Limiter } from '../../src/core/limiter.js';
import { rateLimit } from '../../src/index.js';
import { FaultyStore } from '../support/faulty-store.js';
import { limiterWithFaults } from '../support/limiters.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { sleep } from '../support/time.js';

const TIMEOUT = 40;
const rule = { scope: 'a', limit: 100, windowSec: 60 };
const requests = new AsyncLocalStorage<string>();

/** Every event, with the request in whose context its listener ran. */
function told(limiter: Limiter): string[] {
  const seen: string[] = [];
  const names: EventName[] = ['allowed', 'refused', 'blocked', 'store-error', 'degraded', 'recovered'];
  for (const name of names) limiter.on(name, () => seen.push(`${name} in ${String(requests.getStore())}`));
  return seen;
}

describe('W5 events of a time-out belong to their own request', () => {
  test.each<[FailMode, string]>([
    ['open', 'allowed'],
    ['closed', 'refused'],
    ['local', 'allowed'],
  ])('two requests that are late on one timer, fail mode %s', async (failMode, verdict) => {
    const { limiter, store } = limiterWithFaults(rule, { failMode, storeTimeoutMs: TIMEOUT });
    // Its request arms the timer for the first time.
    await requests.run('the first', () => limiter.consume('alice'));
    const seen = told(limiter);
    store.fault = 'hangs';
    const after = await Promise.all(
      ['one', 'two'].map(name =>
        requests.run(name, async () => {
          await limiter.consume('alice');
          return requests.getStore();
        }),
      ),
    );
    expect(after).toEqual(['one', 'two']);
    expect(seen).toEqual([
      'store-error in one',
      'degraded in one',
      `${verdict} in one`,
      'store-error in two',
      `${verdict} in two`,
    ]);
  });

  test('effects, too', async () => {
    const { limiter, store } = limiterWithFaults(rule, { storeTimeoutMs: TIMEOUT });
    const [first, second] = await Promise.all([limiter.reserve('alice'), limiter.reserve('bob')]);
    const seen = told(limiter);
    store.fault = 'hangs';
    await Promise.all([
      requests.run('one', () => first.settle(1)),
      requests.run('two', () => second.settle(1)),
    ]);
    expect(seen).toEqual(['store-error in one', 'degraded in one', 'store-error in two']);
  });

  test('a request that no context was made for is told in none', async () => {
    const { limiter, store } = limiterWithFaults(rule, { storeTimeoutMs: TIMEOUT });
    store.fault = 'hangs';
    const seen = told(limiter);
    await Promise.all([requests.run('one', () => limiter.consume('alice')), limiter.consume('bob')]);
    expect(seen.filter(text => text.startsWith('allowed'))).toEqual([
      'allowed in one',
      'allowed in undefined',
    ]);
  });

  test('the timer keeps no request: it runs in the context in which the limiter was made', async () => {
    const late: unknown[] = [];
    const deadlines = new Deadlines<Pending>(TIMEOUT, () => late.push(requests.getStore()));
    requests.run('the first', () => {
      deadlines.watch(new Pending(), performance.now());
    });
    await sleep(3 * TIMEOUT);
    expect(late).toEqual([undefined]);
  });

  test('the handlers behind a limiter, and what it tells, are in the context of their request', async () => {
    const store = new FaultyStore(new MemoryStore());
    const app = express();
    app.use((req, _res, next) => {
      requests.run(req.url, next);
    });
    const limiter = rateLimit({ ...rule, store, storeTimeoutMs: TIMEOUT, keyFn: () => 'alice' });
    const seen: string[] = [];
    limiter.limiter.on('allowed', () => seen.push(String(requests.getStore())));
    app.use(limiter, (_req, res) => {
      res.send(requests.getStore());
    });
    const server = app.listen(0, '127.0.0.1');
    try {
      await new Promise(done => server.once('listening', done));
      const { port } = server.address() as AddressInfo;
      const urls = ['/1', '/2', '/3'];
      const ask = () =>
        Promise.all(urls.map(async url => (await fetch(`http://127.0.0.1:${String(port)}${url}`)).text()));
      expect(await ask()).toEqual(urls);
      store.fault = 'hangs';
      expect(await ask()).toEqual(urls);
      expect(seen.sort()).toEqual([...urls, ...urls].sort());
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
