import { createLimiter, type Store } from '../../../src/index.js';
import { CLIENTS } from '../../support/redis/clients.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { onEnd, server, storeOver } = stage();

const DEADLINE_MS = 5_000;
/** Where tests share their cores. */
const AND_A_BIT_MS = 2_500;

interface Ended {
  readonly how: string;
  readonly ms: number;
}

async function timed(call: () => unknown): Promise<Ended> {
  const begin = performance.now();
  let how = 'resolved';
  try {
    await call();
  } catch (error) {
    how = (error as { code?: string }).code ?? String(error);
  }
  return { how, ms: performance.now() - begin };
}

describe.each(CLIENTS)('W4 $name', kind => {
  it('every call of an operator on a frozen connection ends', async () => {
    const redis = await server();
    onEnd(() => {
      redis.thaw();
    });
    const store: Store = await storeOver(kind.single(redis));
    const limiter = createLimiter({
      scope: 'a',
      limit: 1,
      windowSec: 60,
      blockSec: 60,
      store,
      failMode: 'local',
    });
    await limiter.consume(['alice', 'x']);
    // The block that this starts is noted in the list of blocks, in calls that nobody answers.
    await limiter.consume(['alice', 'x']);
    redis.freeze();
    const hash = 'a'.repeat(64);
    const calls: Record<string, () => unknown> = {
      inspect: () => store.inspect(hash),
      reset: () => store.reset(hash),
      'reset of a scope': () => store.reset(hash, 'a'),
      blocked: () => store.blocked(),
      'blocked of a part': () => store.blocked({ part: hash }),
      clear: () => store.clear(),
      'clear of a scope': () => store.clear(['a']),
      'inspect of the limiter': () => limiter.inspect('alice'),
      resetAll: () => limiter.resetAll(),
    };
    const ended = await Promise.all(
      Object.entries(calls).map(async ([name, call]) => [name, await timed(call)] as const),
    );
    expect(Object.fromEntries(ended.map(([name, { how }]) => [name, how]))).toEqual(
      Object.fromEntries(Object.keys(calls).map(name => [name, 'ERR_LIMITKEEPER_STORE_TIMEOUT'])),
    );
    for (const [, { ms }] of ended) expect(ms).toBeLessThan(DEADLINE_MS + AND_A_BIT_MS);

    const closed = await timed(async () => {
      await limiter.close();
      await store.close();
    });
    expect(closed).toEqual({ how: 'resolved', ms: expect.any(Number) });
    expect(closed.ms).toBeLessThan(DEADLINE_MS + AND_A_BIT_MS);
  });

  it('closing does not wait for a list of blocks that nobody takes down', async () => {
    const redis = await server();
    onEnd(() => {
      redis.thaw();
    });
    const store = await storeOver(kind.single(redis));
    const limiter = createLimiter({ scope: 'a', limit: 1, windowSec: 60, blockSec: 60, store });
    await limiter.consume(['alice', 'x']);
    const noted = limiter.consume(['alice', 'x']);
    // As soon as the reply is there, before what is written then has an answer.
    await noted.then(() => {
      redis.freeze();
    });
    const closed = await timed(() => store.close());
    expect(closed.how).toBe('resolved');
    expect(closed.ms).toBeLessThan(DEADLINE_MS + AND_A_BIT_MS);
  });
});
