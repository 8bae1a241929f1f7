import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import express from 'express';
import { rateLimit } from '../../../src/index.js';
import { RedisStore } from '../../../src/stores/redis/index.js';
import { CLIENTS } from '../../support/redis/clients.js';
import { BOUND_MS, DEADLINE_MS, endings } from '../../support/redis/load.js';
import { startRedis, until } from '../../support/redis/server.js';

jest.setTimeout(60_000);
const onEnd = endings();

describe('over HTTP, while Redis is frozen', () => {
  it.each(CLIENTS)('fail-open answers 200, fail-closed 503, in time ($name)', async kind => {
    const redis = await startRedis();
    onEnd(() => redis.stop());
    const opened = kind.single(redis);
    onEnd(opened.close);
    await opened.ready;
    const store = new RedisStore({ client: opened.client });
    const app = express();
    for (const failMode of ['open', 'closed'] as const) {
      app.use(
        `/${failMode}`,
        rateLimit({
          scope: `http.${failMode}`,
          limit: 100_000,
          windowSec: 60,
          keyFn: () => 'somebody',
          store,
          failMode,
          storeTimeoutMs: DEADLINE_MS,
        }),
        (_req, res) => {
          res.send('served');
        },
      );
    }
    const server = createServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onEnd(async () => {
      server.closeAllConnections();
      server.close();
    });
    const base = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    const get = async (path: string): Promise<{ status: number; ms: number; retryAfter: string | null }> => {
      const begin = performance.now();
      const response = await fetch(base + path);
      await response.arrayBuffer();
      const { status, headers } = response;
      return { status, ms: performance.now() - begin, retryAfter: headers.get('retry-after') };
    };

    expect((await get('/open')).status).toBe(200);
    expect((await get('/closed')).status).toBe(200);
    redis.freeze();
    const answers: { path: string; status: number; ms: number; retryAfter: string | null }[] = [];
    const lane = async (path: string): Promise<void> => {
      for (let i = 0; i < 128; i++) answers.push({ path, ...(await get(path)) });
    };
    await Promise.all(Array.from({ length: 4 }, (_, i) => lane(i % 2 === 0 ? '/open' : '/closed')));
    redis.thaw();
    await until('the store decides again', async () => (await get('/closed')).status === 200);

    const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
    const max = times.at(-1)!;
    process.stdout.write(
      `  fault: frozen, over HTTP, ${kind.name}: ${String(answers.length)} requests, ` +
        `ms p50 ${times[256]!.toFixed(1)} p99 ${times[506]!.toFixed(1)} max ${max.toFixed(1)}\n`,
    );
    expect(max).toBeLessThan(BOUND_MS);
    expect(answers.filter(({ path, status }) => path === '/open' && status !== 200)).toEqual([]);
    expect(answers.filter(({ path, status }) => path === '/closed' && status !== 503)).toEqual([]);
    // The store is left alone for a second: that is how long it is worth waiting.
    expect(new Set(answers.map(({ path, retryAfter }) => `${path} ${String(retryAfter)}`))).toEqual(
      new Set(['/open null', '/closed 1']),
    );
  });
});
