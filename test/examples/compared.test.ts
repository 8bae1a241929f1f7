// The README's table of limiters, where it can be tried: what it says of the others is seen here.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import express from 'express';
import type { RequestHandler } from 'express';
import { MemoryStore as StoreOfOther, rateLimit as rateLimitOfOther } from 'express-rate-limit';
import { byStatus, createLimiter, MemoryStore, rateLimit } from 'limitkeeper';
import * as flexible from 'rate-limiter-flexible';
import { FaultyStore } from '../support/faulty-store.js';
import { readMarkdown } from '../support/markdown.js';
import { serve } from '../support/served.js';
import type { Answer, Served } from '../support/served.js';
import { watchWarnings } from '../support/warnings.js';

const served: Served[] = [];

beforeEach(() => {
  watchWarnings();
});

afterEach(async () => {
  for (const server of served.splice(0)) await server.close();
  jest.restoreAllMocks();
});

async function behind(
  ...limits: RequestHandler[]
): Promise<{ ask: () => Promise<Answer>; handled: () => number }> {
  let handled = 0;
  const app = express().use(...limits, (_req, res) => {
    handled += 1;
    setTimeout(() => res.sendStatus(401), 20);
  });
  const server = await serve(app);
  served.push(server);
  return { ask: () => server.ask('/'), handled: () => handled };
}

const QUIET = { validate: false, legacyHeaders: true } as const;

const manifestOf = (name: string): { version: string; dependencies?: Record<string, string> } =>
  JSON.parse(readFileSync(path.join(__dirname, '../../node_modules', name, 'package.json'), 'utf8')) as {
    version: string;
    dependencies?: Record<string, string>;
  };

test('the versions are those that were looked at', () => {
  const major = (name: string): string => `${name} ${manifestOf(name).version.split('.')[0]!}`;
  expect(readMarkdown('README.md')).toContain(
    `| | limitkeeper | ${major('express-rate-limit')} | ${major('rate-limiter-flexible')} |`,
  );
});

test('packages that each brings', () => {
  const brought = (name: string): string[] =>
    Object.keys(manifestOf(name).dependencies ?? {}).flatMap(other => [other, ...brought(other)]);
  expect(brought('express-rate-limit')).toEqual(['debug', 'ms', 'ip-address']);
  expect(brought('rate-limiter-flexible')).toEqual([]);
});

describe('a hundred wrong passwords at once', () => {
  const fifth = async ({ ask }: { ask: () => Promise<Answer> }): Promise<Answer> => {
    for (let i = 0; i < 4; i += 1) await ask();
    return ask();
  };
  const ours = (): RequestHandler =>
    rateLimit({
      scope: 'login',
      limit: 5,
      windowSec: 60,
      blockSec: 60,
      count: 'failures',
      outcome: byStatus,
      store: new MemoryStore(),
    });
  const others = (): RequestHandler =>
    rateLimitOfOther({ ...QUIET, limit: 5, windowMs: 60_000, skipSuccessfulRequests: true });

  test.each([
    ['limitkeeper', ours],
    ['express-rate-limit', others],
  ])('%s lets five through', async (_name, limit) => {
    const { ask, handled } = await behind(limit());
    await Promise.all(Array.from({ length: 100 }, ask));
    expect(handled()).toBe(5);
  });

  test('the answer of the fifth says how long to wait, here and not there', async () => {
    expect((await fifth(await behind(ours()))).headers['retry-after']).toMatch(/^\d+$/);
    expect((await fifth(await behind(others()))).headers['retry-after']).toBeUndefined();
  });
});

describe('a request that one of two rules refuses', () => {
  test('limitkeeper charges none', async () => {
    const limiter = createLimiter({
      rules: [
        { scope: 'large', limit: 10, windowSec: 60, algorithm: 'fixed-window' },
        { scope: 'small', limit: 1, windowSec: 60, algorithm: 'fixed-window' },
      ],
      store: new MemoryStore(),
    });
    for (let i = 0; i < 5; i += 1) await limiter.consume('a');
    expect((await limiter.peek('a')).readings.map(({ remaining }) => remaining)).toEqual([9, 0]);
  });

  test('express-rate-limit charges the first', async () => {
    const store = new StoreOfOther();
    const { ask } = await behind(
      rateLimitOfOther({ ...QUIET, limit: 10, windowMs: 60_000, store, keyGenerator: () => 'a' }),
      rateLimitOfOther({ ...QUIET, limit: 1, windowMs: 60_000 }),
    );
    for (let i = 0; i < 5; i += 1) await ask();
    expect((await store.get('a'))?.totalHits).toBe(5);
  });

  test('a RateLimiterUnion charges the others', async () => {
    const large = new flexible.RateLimiterMemory({ keyPrefix: 'large', points: 10, duration: 60 });
    const small = new flexible.RateLimiterMemory({ keyPrefix: 'small', points: 1, duration: 60 });
    const union = new flexible.RateLimiterUnion(large, small);
    for (let i = 0; i < 5; i += 1) await union.consume('a').catch(() => undefined);
    expect((await large.get('a'))?.consumedPoints).toBe(5);
  });
});

test('a store that does not answer: limitkeeper decides without it, express-rate-limit waits', async () => {
  const silent = new FaultyStore(new MemoryStore());
  silent.fault = 'hangs';
  const ours = await behind(rateLimit({ scope: 'a', limit: 1, windowSec: 60, store: silent }));
  expect((await ours.ask()).status).toBe(401);

  const store = new StoreOfOther();
  store.increment = () => new Promise(() => {});
  const others = await behind(
    rateLimitOfOther({ ...QUIET, windowMs: 60_000, store, passOnStoreError: true }),
  );
  const late = new Promise(resolve => setTimeout(() => resolve('still waiting'), 1000));
  expect(await Promise.race([others.ask().catch(() => 'cut'), late])).toBe('still waiting');
});

test('express-rate-limit hands stores the address in plain, and so does rate-limiter-flexible', async () => {
  const store = new StoreOfOther();
  const increment = jest.spyOn(store, 'increment');
  const { ask } = await behind(rateLimitOfOther({ ...QUIET, windowMs: 60_000, store }));
  await ask();
  expect(increment.mock.calls).toEqual([['127.0.0.1']]);
  expect(new flexible.RateLimiterMemory({ points: 1, duration: 1 }).getKey('127.0.0.1')).toBe(
    'rlflx:127.0.0.1',
  );
});

test('what rate-limiter-flexible has', () => {
  const has = Object.keys(flexible);
  expect(has).toEqual(
    expect.arrayContaining([
      'BurstyRateLimiter',
      'RateLimiterMongo',
      'RateLimiterMySQL',
      'RateLimiterPostgres',
      'RateLimiterQueue',
      'RateLimiterRedis',
      'RateLimiterUnion',
      'RLWrapperTimeouts',
    ]),
  );
  expect(has.filter(name => /express(?!Brute)|middleware/i.test(name))).toEqual([]);
});
