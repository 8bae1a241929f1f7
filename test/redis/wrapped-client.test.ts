import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createLimiter } from '../../src/index.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { stage } from '../support/redis/stage.js';

const { onEnd, server } = stage();

const seen: unknown[] = [];
const note = (error: unknown) => seen.push(error);
beforeAll(() => {
  process.on('uncaughtException', note);
  process.on('unhandledRejection', note);
});
afterAll(() => {
  process.off('uncaughtException', note);
  process.off('unhandledRejection', note);
});

const assertNever = (): never => {
  throw new Error('instrumentation failed');
};

describe.each([true, false])('with batching: %s', batching => {
  test.each<[string, (client: Redis) => { clock?: { now: () => number } }]>([
    [
      'a client that its user has wrapped, and whose wrapper throws',
      client => {
        client.sendCommand = assertNever;
        return {};
      },
    ],
    [
      'a wrapper that throws when the command has been sent',
      client => {
        const send = client.sendCommand.bind(client);
        client.sendCommand = (...args) => {
          send(...args);
          return assertNever();
        };
        return {};
      },
    ],
    [
      'a wrapper that rejects before it sends',
      client => {
        client.sendCommand = () => Promise.reject(new Error('instrumentation failed'));
        return {};
      },
    ],
    ['a clock that throws', () => ({ clock: { now: assertNever } })],
  ])('%s is a store that failed, at once and for this call alone', async (_what, spoil) => {
    const client = new Redis({ port: (await server()).port });
    onEnd(() => {
      client.disconnect();
    });
    await client.ping();
    const store = new RedisStore({ client, batching, ...spoil(client) });
    const limiter = createLimiter({ scope: 'a', limit: 5, windowSec: 60, store, storeTimeoutMs: 2_000 });
    const messages: string[] = [];
    limiter.on('store-error', ({ error }) => messages.push(error.message));
    const start = performance.now();
    const { allowed, degraded } = await limiter.consume('alice');
    const took = performance.now() - start;
    expect([allowed, degraded]).toEqual([true, 'open']);
    expect(messages).toEqual([expect.stringContaining('instrumentation failed')]);
    expect(took).toBeLessThan(1_000);
    client.disconnect();
    await wait(50);
    expect(seen).toEqual([]);
  });

  test('a clock that throws only when a block is noted spoils no answer', async () => {
    const client = new Redis({ port: (await server()).port });
    onEnd(() => {
      client.disconnect();
    });
    await client.ping();
    let isBroken = false;
    const clock = { now: () => (isBroken ? assertNever() : 1_764_585_780_000) };
    const store = new RedisStore({ client, batching, clock });
    const limiter = createLimiter({ scope: 'a', limit: 5, windowSec: 60, store, storeTimeoutMs: 2_000 });
    const blocked = limiter.block('alice', 60);
    // The call is on its way; the note about the block comes with its reply.
    await new Promise(setImmediate);
    isBroken = true;
    expect(await blocked).toMatchObject({ allowed: false, reason: 'blocked' });
    await wait(50);
    expect(seen).toEqual([]);
  });
});
