import { Check } from '../../src/core/check.js';
import type { FailMode, LimiterEvents } from '../../src/core/events.js';
import type { Limiter } from '../../src/core/limiter.js';
import { hashSubject } from '../../src/core/subject.js';
import { limiterOn, limiterWithFaults } from '../support/limiters.js';
import type { Fault } from '../support/faulty-store.js';
import { sleep } from '../support/time.js';

const rule = { scope: 'login', limit: 5, windowSec: 60, algorithm: 'fixed-window', blockSec: 900 } as const;
const TIMEOUT = 40;

/** Everything that tells of the store. */
function storeNews(limiter: Limiter): string[] {
  const news: string[] = [];
  limiter.on('store-error', ({ error, dropped }) =>
    news.push(`${error.code.slice(16)}${dropped ? ' dropped' : ''}`),
  );
  limiter.on('degraded', ({ failMode }) => news.push(`degraded ${failMode}`));
  limiter.on('recovered', () => news.push('recovered'));
  return news;
}

const nobodyCounted = {
  scope: null,
  limit: null,
  remaining: null,
  moreAfterMs: null,
  resetAfterMs: null,
  at: expect.any(Number),
  readings: [],
};
const answers: Record<'open' | 'closed', object> = {
  open: { ...nobodyCounted, allowed: true, reason: 'ok', retryAfterMs: 0, degraded: 'open' },
  closed: { ...nobodyCounted, allowed: false, reason: 'unavailable', retryAfterMs: 1000, degraded: 'closed' },
};
const faults: [string, Fault][] = [
  ['throws', 'throws'],
  ['rejects', 'rejects'],
  ['hangs', 'hangs'],
  ['answers nonsense', { answers: () => ({ readings: [{}] }) }],
];

describe.each(['open', 'closed'] as const)('fail mode %s', failMode => {
  test.each(faults)('a store that %s: nobody counts, and the answer is a value', async (_what, fault) => {
    const { limiter, store } = limiterWithFaults(rule, { failMode, storeTimeoutMs: TIMEOUT });
    store.fault = fault;
    expect(await limiter.consume('alice')).toStrictEqual(answers[failMode]);
    expect(await limiter.peek('alice')).toStrictEqual(answers[failMode]);
    const reservation = await limiter.reserve('alice');
    expect(reservation.decision).toStrictEqual(answers[failMode]);
    expect(JSON.parse(JSON.stringify(reservation.decision))).toStrictEqual(reservation.decision);
    // Nothing was held: there is nothing to settle either, whether the store is back or not.
    store.fault = undefined;
    expect(await reservation.settle(5)).toMatchObject({ allowed: true, remaining: 5 });
  });

  test('an operation that fails says so in the same words, and is reported as dropped', async () => {
    const { limiter, store } = limiterWithFaults(rule, { failMode });
    const taken = await limiter.consume('alice');
    const { decision: held } = await limiter.reserve('alice', { cost: 2 });
    const news = storeNews(limiter);
    store.fault = 'rejects';
    const calls: (() => Promise<unknown>)[] = [
      () => limiter.refund('alice', taken),
      () => limiter.settle('alice', held, 1),
      () => limiter.charge('alice', 2),
      () => limiter.block('alice', 'forever'),
    ];
    for (const call of calls) expect(await call()).toStrictEqual(answers[failMode]);
    expect(news).toEqual([
      'STORE dropped',
      `degraded ${failMode}`,
      ...Array<string>(3).fill('STORE dropped'),
    ]);
    store.fault = undefined;
    // Three are held until they lapse by themselves.
    expect(await limiter.peek('alice')).toMatchObject({ allowed: true, remaining: 2 });
    expect(news.at(-1)).toBe('recovered');
  });
});

test('the default is open', async () => {
  const { limiter, store } = limiterWithFaults(rule);
  store.fault = 'throws';
  expect(await limiter.consume('alice')).toStrictEqual(answers.open);
});

describe('fail mode local', () => {
  const local = () => limiterWithFaults(rule, { failMode: 'local', storeTimeoutMs: TIMEOUT });

  test.each(faults)('a store that %s: a memory store of this process decides', async (_what, fault) => {
    const { limiter, store } = local();
    await limiter.consume('alice', { cost: 4 });
    store.fault = fault;
    // It begins with nothing: what was used lies in the store that is away.
    const seen = [];
    for (let i = 0; i < 6; i += 1) seen.push(await limiter.consume('alice'));
    expect(seen.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 4],
      [true, 3],
      [true, 2],
      [true, 1],
      [true, 0],
      [false, 0],
    ]);
    expect(seen[0]).toMatchObject({
      scope: 'login',
      limit: 5,
      degraded: 'local',
      receipt: { kind: 'consume', local: true },
    });
    expect(seen[5]).toMatchObject({ reason: 'limit', retryAfterMs: 900_000, degraded: 'local' });
  });

  test('the store decides again as soon as it is back, with what it knew', async () => {
    const { limiter, store } = local();
    const news = storeNews(limiter);
    await limiter.consume('alice', { cost: 4 });
    store.fault = 'rejects';
    await limiter.consume('alice', { cost: 3 });
    expect(await limiter.peek('alice')).toMatchObject({ remaining: 2, degraded: 'local' });
    store.fault = undefined;
    const back = await limiter.consume('alice');
    expect(back).toMatchObject({ allowed: true, remaining: 0 });
    expect(back).not.toHaveProperty('degraded');
    expect(back.receipt).not.toHaveProperty('local');
    expect(news).toEqual(['STORE', 'degraded local', 'STORE', 'recovered']);
  });

  test('what was taken locally goes back to the local store, also when the other is back', async () => {
    const { limiter, store, memory } = local();
    await limiter.consume('alice', { cost: 1 });
    store.fault = 'rejects';
    const taken = await limiter.consume('alice', { cost: 3 });
    const { decision: held } = await limiter.reserve('alice', { cost: 2 });
    expect(await limiter.peek('alice')).toMatchObject({ remaining: 0, degraded: 'local' });
    store.fault = undefined;
    const before = JSON.stringify(await limiter.inspect('alice'));
    expect(await limiter.refund('alice', JSON.parse(JSON.stringify(taken)) as typeof taken)).toMatchObject({
      remaining: 3,
      degraded: 'local',
    });
    expect(await limiter.settle('alice', held, 1)).toMatchObject({ remaining: 4, degraded: 'local' });
    expect(JSON.stringify(await limiter.inspect('alice'))).toBe(before);
    expect(memory.size).toBe(1);
  });

  test('what was taken from the store that is away is not given back by the local one', async () => {
    const { limiter, store } = local();
    const taken = await limiter.consume('alice', { cost: 3 });
    const { decision: held } = await limiter.reserve('alice', { cost: 1 });
    const news = storeNews(limiter);
    store.fault = 'rejects';
    await limiter.consume('alice', { cost: 4 });
    expect(await limiter.refund('alice', taken)).toMatchObject({ degraded: 'local', readings: [] });
    expect(await limiter.settle('alice', held, 5)).toMatchObject({ degraded: 'local', readings: [] });
    expect(await limiter.peek('alice')).toMatchObject({ remaining: 1, degraded: 'local' });
    expect(news).toEqual(['STORE', 'degraded local', 'STORE dropped', 'STORE dropped', 'STORE']);
  });

  test('charge, block, unblock and reset take effect locally', async () => {
    const { limiter, store } = local();
    const news = storeNews(limiter);
    store.fault = 'rejects';
    expect(await limiter.charge('alice', 5)).toMatchObject({ reason: 'blocked', degraded: 'local' });
    expect(await limiter.unblock('alice')).toMatchObject({ allowed: true, remaining: 0, degraded: 'local' });
    expect(await limiter.block('alice', 60)).toMatchObject({ retryAfterMs: 60_000, degraded: 'local' });
    expect(await limiter.reset('alice')).toMatchObject({ remaining: 5, degraded: 'local' });
    expect(news.filter(text => text.includes('dropped'))).toEqual([]);
  });

  test('what is forgiven, reset or unblocked is so in the next outage, too', async () => {
    for (const verb of ['forgive', 'reset', 'unblock'] as const) {
      const { limiter, store } = local();
      store.fault = 'rejects';
      await limiter.charge('alice', 5);
      store.fault = undefined;
      await limiter[verb]('alice');
      store.fault = 'rejects';
      expect(await limiter.peek('alice', { cost: 0 })).toMatchObject({ allowed: true, degraded: 'local' });
    }
  });

  test('a block by hand outlives a success there, too', async () => {
    const { limiter, store } = local();
    store.fault = 'rejects';
    await limiter.block('alice', 60);
    store.fault = undefined;
    await limiter.forgive('alice');
    store.fault = 'rejects';
    expect(await limiter.peek('alice')).toMatchObject({ reason: 'blocked', degraded: 'local' });
  });

  test('limiters of one store share the local one, as they share it', async () => {
    const { limiter, store, clock } = local();
    const other = limiterOn(clock, { ...rule, failMode: 'local' }, store);
    const open = limiterOn(clock, rule, store);
    store.fault = 'throws';
    await limiter.consume('alice', { cost: 3 });
    expect(await other.consume('alice', { cost: 2 })).toMatchObject({ allowed: true, remaining: 0 });
    store.fault = undefined;
    // Whoever forgives, forgives for all.
    await open.forgive('alice');
    store.fault = 'throws';
    expect(await limiter.peek('alice')).toMatchObject({ remaining: 5, degraded: 'local' });
  });

  test('of several operations, those that can go on locally do', async () => {
    const { limiter, store } = limiterWithFaults([rule, { ...rule, scope: 'other' }], { failMode: 'local' });
    const { decision } = await limiter.reserve('alice');
    const news = storeNews(limiter);
    store.fault = 'rejects';
    const [one, two] = limiter.rules;
    const alice = hashSubject('alice', limiter.hashing);
    const { decision: after } = await limiter.engine.effect([
      new Check(one!, alice, { type: 'settle', at: decision.at, held: 1, actual: 5 }),
      new Check(two!, alice, { type: 'charge', units: 2 }),
    ]);
    expect(after.readings.map(({ remaining }) => remaining)).toEqual([5, 3]);
    expect(after.degraded).toBe('local');
    expect(news).toEqual(['STORE dropped', 'degraded local']);
  });

  test('what the store answers too late does not reach a verdict that was given', async () => {
    const { limiter, store, memory } = local();
    await limiter.consume('alice', { cost: 4 });
    const alice = hashSubject('alice', limiter.hashing);
    store.fault = 'hangs';
    const checks = limiter.rules.map(rule => new Check(rule, alice, { type: 'consume', cost: 3 }));
    const verdict = await limiter.engine.decide(checks);
    store.fault = undefined;
    store.thaw();
    await sleep(10);
    // The store has refused and begun a block by now.
    expect(memory.blocked().blocks).toHaveLength(1);
    expect(checks).toMatchObject([{ reason: 'limit', blockStarted: true }]);
    expect(verdict.allowed).toBe(true);
    expect(verdict.decision).toMatchObject({ allowed: true, remaining: 2, degraded: 'local' });
  });

  test('on time, also when the store hangs', async () => {
    const { limiter, store } = local();
    store.fault = 'hangs';
    const start = performance.now();
    await limiter.consume('alice');
    expect(performance.now() - start).toBeLessThan(4 * TIMEOUT);
  });
});

describe('what listeners hear of the store', () => {
  test.each(['open', 'closed', 'local'] as FailMode[])(
    'with %s: each failure, once that it began, once that it ended',
    async failMode => {
      const { limiter, store } = limiterWithFaults(rule, { failMode });
      const news = storeNews(limiter);
      await limiter.consume('alice');
      store.fault = 'rejects';
      for (let i = 0; i < 7; i += 1) await limiter.consume('alice');
      store.fault = undefined;
      await sleep(1050);
      await limiter.consume('alice');
      await limiter.consume('alice');
      expect(news).toEqual([
        'STORE',
        `degraded ${failMode}`,
        ...Array<string>(4).fill('STORE'),
        'STORE_SUSPENDED',
        'STORE_SUSPENDED',
        'recovered',
      ]);
    },
  );

  test('the error carries the cause', async () => {
    const { limiter, store } = limiterWithFaults(rule);
    const errors: LimiterEvents['store-error'][] = [];
    limiter.on('store-error', event => errors.push(event));
    store.fault = 'rejects';
    await limiter.consume('alice');
    expect(errors).toMatchObject([
      { error: { code: 'ERR_LIMITKEEPER_STORE', cause: { message: 'connection refused' } }, dropped: false },
    ]);
  });
});

describe('close', () => {
  test('waits for effects under way, and for their deadline at most', async () => {
    const { limiter, store, memory } = limiterWithFaults(rule, { storeTimeoutMs: 500 });
    const { decision } = await limiter.reserve('alice', { cost: 3 });
    store.fault = { slowMs: 60 };
    let settled = false;
    const settling = limiter.settle('alice', decision, 2).then(() => {
      settled = true;
    });
    const charging = limiter.charge('bob');
    await limiter.close();
    expect(settled).toBe(true);
    await Promise.all([settling, charging]);
    expect(memory.size).toBe(2);

    const frozen = limiterWithFaults(rule, { storeTimeoutMs: TIMEOUT });
    frozen.store.fault = 'hangs';
    void frozen.limiter.charge('alice');
    const start = performance.now();
    await frozen.limiter.close();
    expect(performance.now() - start).toBeLessThan(4 * TIMEOUT);
  });

  test('leaves the store open: it may serve others', async () => {
    const { limiter, store } = limiterWithFaults(rule);
    const close = jest.spyOn(store, 'close');
    await limiter.close();
    await limiter.close();
    expect(close).not.toHaveBeenCalled();
    expect(await limiter.consume('alice')).toMatchObject({ allowed: true });
  });
});

describe('what operators ask for', () => {
  test('inspect and resetAll reject when the store fails, whatever the fail mode', async () => {
    const { limiter, store } = limiterWithFaults(rule, { failMode: 'local' });
    store.inspect = () => {
      throw new Error('the disk is full');
    };
    store.clear = async () => {
      throw new Error('connection refused');
    };
    await expect(limiter.inspect('alice')).rejects.toThrow('the disk is full');
    await expect(limiter.resetAll()).rejects.toThrow('connection refused');
  });
});
