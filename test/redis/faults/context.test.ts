import { AsyncLocalStorage } from 'node:async_hooks';
import express from 'express';
import type { AddressInfo } from 'node:net';
import { createLimiter, rateLimit } from '../../../src/index.js';
import type { EventName } from '../../../src/index.js';
import { CLIENTS } from '../../support/redis/clients.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { onEnd, server, storeOver } = stage();

const requests = new AsyncLocalStorage<string>();
const names = (n: number) => Array.from({ length: n }, (_, i) => `/${String(i)}`);

describe.each(CLIENTS)('W5 $name', kind => {
  it('decisions that travel in one call tell of themselves in their own request', async () => {
    const redis = await server();
    const store = await storeOver(kind.single(redis));
    const limiter = createLimiter({ scope: 'a', limit: 100, windowSec: 60, store, storeTimeoutMs: 5_000 });
    // The first makes the timer and loads the script.
    await requests.run('the first', () => limiter.consume('somebody'));
    const told: string[] = [];
    for (const name of ['allowed', 'refused'] satisfies EventName[])
      limiter.on(name, ({ subjectHash }) =>
        told.push(`${name} ${String(subjectHash !== null)} ${String(requests.getStore())}`),
      );
    await redis.call('CONFIG', 'RESETSTAT');
    const after = await Promise.all(
      names(120).map(name =>
        requests.run(name, async () => {
          await limiter.consume('alice');
          return requests.getStore();
        }),
      ),
    );
    // They did travel together.
    expect(await redis.info('cmdstat_evalsha')).toMatch(/^calls=[1-9],/);
    expect(after).toEqual(names(120));
    expect(told.map(text => text.split(' ')[2]).sort()).toEqual(names(120).sort());
    expect(told.filter(text => text.startsWith('refused'))).toHaveLength(20);
  });

  it('late ones, too, each in its own', async () => {
    const redis = await server();
    onEnd(() => {
      redis.thaw();
    });
    const store = await storeOver(kind.single(redis));
    const limiter = createLimiter({ scope: 'a', limit: 100, windowSec: 60, store });
    await requests.run('the first', () => limiter.consume('alice'));
    const told: string[] = [];
    for (const name of ['store-error', 'degraded', 'allowed'] satisfies EventName[])
      limiter.on(name, () => told.push(`${name} ${String(requests.getStore())}`));
    redis.freeze();
    await Promise.all(names(4).map(name => requests.run(name, () => limiter.consume('alice'))));
    expect(told.sort()).toEqual(
      ['degraded /0', ...names(4).flatMap(name => [`allowed ${name}`, `store-error ${name}`])].sort(),
    );
  });

  it('the handlers behind a limiter are in the context of their request, on time, refused or late', async () => {
    const redis = await server();
    onEnd(() => {
      redis.thaw();
    });
    const store = await storeOver(kind.single(redis));
    const app = express();
    app.use((req, _res, next) => {
      requests.run(req.url, next);
    });
    app.use(
      rateLimit({
        scope: 'a',
        limit: 10,
        windowSec: 60,
        store,
        keyFn: () => 'alice',
        onLimited: (_req, res) => {
          res.status(429).send(requests.getStore());
        },
      }),
    );
    app.use((_req, res) => {
      res.send(requests.getStore());
    });
    const http = app.listen(0, '127.0.0.1');
    onEnd(() => {
      http.closeAllConnections();
      http.close();
    });
    await new Promise(done => http.once('listening', done));
    const { port } = http.address() as AddressInfo;
    const ask = () =>
      Promise.all(
        names(20).map(async name => {
          const answer = await fetch(`http://127.0.0.1:${String(port)}${name}`);
          return [answer.status, await answer.text()];
        }),
      );
    const first = await ask();
    expect(first.map(([, text]) => text)).toEqual(names(20));
    expect(first.filter(([status]) => status === 429)).toHaveLength(10);
    redis.freeze();
    expect(await ask()).toEqual(names(20).map(name => [200, name]));
  });
});
