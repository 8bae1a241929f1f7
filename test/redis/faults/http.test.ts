import { performance } from 'node:perf_hooks';
import express from 'express';
import { rateLimit } from '../../../src/index.js';
import type { RedisStore } from '../../../src/stores/redis/index.js';
import { DECIDE } from '../../../src/stores/redis/scripts.js';
import { call, closeServers, serve } from '../../support/http.js';
import { type ClientKind, CLIENTS } from '../../support/redis/clients.js';
import { BOUND_MS, DEADLINE_MS, PATIENT_MS } from '../../support/redis/load.js';
import { type RedisServer, until } from '../../support/redis/server.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { onEnd, server, storeOver } = stage();

async function scene(
  kind: ClientKind,
  optionsFor: (port: number) => object = () => ({}),
): Promise<{ redis: RedisServer; store: RedisStore }> {
  const redis = await server();
  const store = await storeOver(kind.single(redis, false, optionsFor(redis.port)));
  onEnd(closeServers);
  return { redis, store };
}

interface Answer {
  readonly status: number;
  readonly ms: number;
  readonly retryAfter: string | undefined;
}

async function timed(url: string): Promise<Answer> {
  const begin = performance.now();
  const { status, headers } = await call(url);
  return { status, ms: performance.now() - begin, retryAfter: headers['retry-after'] };
}

interface Outage {
  readonly title: string;
  readonly begin: (redis: RedisServer) => unknown;
  readonly end: (redis: RedisServer) => unknown;
}

const OUTAGES: readonly Outage[] = [
  {
    title: 'over HTTP, while Redis is frozen',
    begin: redis => redis.freeze(),
    end: redis => redis.thaw(),
  },
  {
    title: 'P62: over HTTP, while Redis is stopped',
    begin: redis => redis.kill(),
    end: redis => redis.restart(),
  },
];

describe.each(OUTAGES)('$title', ({ title, begin, end }) => {
  it.each(CLIENTS)('fail-open answers 200, fail-closed 503, in time ($name)', async kind => {
    const { redis, store } = await scene(kind);
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
    const base = await serve(app);

    expect((await call(`${base}/open`)).status).toBe(200);
    expect((await call(`${base}/closed`)).status).toBe(200);
    await begin(redis);
    const answers: (Answer & { readonly path: string })[] = [];
    const lane = async (path: string): Promise<void> => {
      for (let i = 0; i < 128; i++) answers.push({ path, ...(await timed(base + path)) });
    };
    await Promise.all(Array.from({ length: 4 }, (_, i) => lane(i % 2 === 0 ? '/open' : '/closed')));
    await end(redis);
    await until('the store decides again', async () => (await call(`${base}/closed`)).status === 200);

    const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
    const max = times.at(-1)!;
    process.stdout.write(
      `  fault: ${title}, ${kind.name}: ${String(answers.length)} requests, ` +
        `ms p50 ${times[256]!.toFixed(1)} p99 ${times[506]!.toFixed(1)} max ${max.toFixed(1)}\n`,
    );
    expect(max).toBeLessThan(BOUND_MS);
    expect(answers.filter(({ path, status }) => path === '/open' && status !== 200)).toEqual([]);
    expect(answers.filter(({ path, status }) => path === '/closed' && status !== 503)).toEqual([]);
    // The store is left alone for a second: that is how long it is worth waiting.
    expect(new Set(answers.map(({ path, retryAfter }) => `${path} ${String(retryAfter)}`))).toEqual(
      new Set(['/open undefined', '/closed 1']),
    );
  });
});

// Every client takes of these what it knows. All of them queue while they have no connection, and here they try to get one
// once a second only: a limiter that left its call to the queue would wait for that, and the next limiter again.
const queueing = (port: number): object => ({
  retryStrategy: () => 1_000,
  maxRetriesPerRequest: null,
  socket: { host: '127.0.0.1', port, reconnectStrategy: () => 1_000 },
});

it.each(CLIENTS)(
  'P66: three limiters in a row fail at once while the client queues, and nothing is counted later ($name)',
  async kind => {
    const { redis, store } = await scene(kind, queueing);
    const limiters = ['first', 'second', 'third'].map(scope =>
      rateLimit({
        scope,
        limit: 1_000,
        windowSec: 60,
        keyFn: () => 'somebody',
        store,
        storeTimeoutMs: PATIENT_MS,
      }),
    );
    const app = express();
    app.use(...limiters, (_req, res) => {
      res.send('served');
    });
    const url = await serve(app);
    expect((await call(url)).headers['ratelimit-policy']).toBeDefined();

    await redis.kill();
    const answers: Answer[] = [];
    for (let i = 0; i < 20; i++) answers.push(await timed(url));
    // Whatever is sent late now can run at once, for the server knows the script, and shows, for it knows of nobody.
    await redis.restart();
    await redis.call('SCRIPT', 'LOAD', DECIDE.text);
    const [first] = limiters;
    await until(
      'the store decides again',
      async () => (await first!.limiter.consume('prober')).degraded === undefined,
    );

    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(PATIENT_MS);
    for (const { limiter } of limiters) expect(await limiter.inspect('somebody')).toEqual([]);
  },
);
