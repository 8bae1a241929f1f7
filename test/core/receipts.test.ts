import type { Decision, Receipt } from '../../src/core/decision.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { spentReceipts } from '../../src/core/spent.js';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { limiterOn } from '../support/limiters.js';
import { NOON } from '../support/decisions.js';

let clock: FakeClock;
beforeEach(() => {
  clock = new FakeClock(NOON);
});

const rule = { scope: 'mail', limit: 10, windowSec: 60, algorithm: 'fixed-window' } as const;
const overJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

describe('decision and receipt are plain data', () => {
  test('also with a cost of -0, wherever it was named', async () => {
    for (const [own, named] of [
      [-0, undefined],
      [1, -0],
      [1, { mail: -0 }],
    ] as const) {
      const limiter = limiterOn(clock, { ...rule, cost: own });
      const decision = await limiter.consume('alice', named === undefined ? {} : { cost: named });
      expect(decision.receipt?.rules).toHaveLength(1);
      expect(overJson(decision)).toStrictEqual(decision);
    }
  });

  test('that survives JSON', async () => {
    const limiter = limiterOn(clock, {
      rules: [
        { ...rule, blockSec: [60, 300] },
        { scope: 'bucket', limit: 5, windowSec: 1, algorithm: 'token-bucket', burst: 9, mode: 'shadow' },
      ],
    });
    const { decision } = await limiter.reserve('alice');
    for (const plain of [
      await limiter.consume('alice', { cost: { mail: 2 } }),
      await limiter.consume('alice', { cost: 100 }),
      decision,
    ]) {
      expect(overJson(plain)).toStrictEqual(plain);
    }
  });

  test('no receipt names the subject or its hash', async () => {
    const limiter = limiterOn(clock, rule);
    const decision = await limiter.consume('alice');
    const [stored] = await limiter.inspect('alice');
    expect(stored).toBeDefined();
    expect(JSON.stringify(decision)).not.toMatch(/alice|[\da-f]{64}/);
  });
});

describe('refund', () => {
  test.each<[string, number, number | undefined, number]>([
    ['all where no number is named', 4, undefined, 10],
    ['a part', 4, 3, 9],
    ['nothing', 4, 0, 6],
    ['never more than was taken', 4, 100, 10],
  ])('gives back %s', async (_what, cost, n, remaining) => {
    const limiter = limiterOn(clock, rule);
    const decision = await limiter.consume('alice', { cost });
    await limiter.consume('bob', { cost });
    expect(await limiter.refund('alice', decision, n)).toMatchObject({ allowed: true, remaining });
    expect(await limiter.peek('alice')).toMatchObject({ remaining });
    expect(await limiter.peek('bob')).toMatchObject({ remaining: 6 });
  });

  test('of more than was taken leaves what others took', async () => {
    const limiter = limiterOn(clock, rule);
    await limiter.consume('alice', { cost: 5 });
    const decision = await limiter.consume('alice', { cost: 2 });
    expect(await limiter.refund('alice', decision, 7)).toMatchObject({ remaining: 5 });
  });

  test.each<[string, (decision: Decision) => Decision | Receipt]>([
    ['the decision', decision => decision],
    ['its receipt', decision => decision.receipt!],
    ['a copy of the decision through JSON', overJson],
    ['a copy of the receipt through JSON', decision => overJson(decision.receipt!)],
  ])('takes %s', async (_what, keep) => {
    const limiter = limiterOn(clock, rule);
    const decision = await limiter.consume('alice', { cost: 4 });
    expect(await limiter.refund('alice', keep(decision))).toMatchObject({ remaining: 10 });
  });

  test('of a receipt that is spent does nothing, also of a copy', async () => {
    const limiter = limiterOn(clock, rule);
    await limiter.consume('alice', { cost: 5 });
    const decision = await limiter.consume('alice', { cost: 4 });
    await limiter.refund('alice', decision, 1);
    for (const again of [decision, decision.receipt!, overJson(decision), overJson(decision.receipt!)]) {
      expect(await limiter.refund('alice', again)).toMatchObject({ remaining: 2 });
    }
  });

  test('is spent for every limiter of the process over the same store', async () => {
    const store = new MemoryStore({ clock });
    const [one, two] = [limiterOn(clock, rule, store), limiterOn(clock, rule, store)];
    await one.consume('alice', { cost: 5 });
    const decision = await one.consume('alice', { cost: 4 });
    await one.refund('alice', decision);
    expect(await two.refund('alice', decision)).toMatchObject({ remaining: 5 });
  });

  test('at a limiter that has none of its scopes spends nothing', async () => {
    const store = new MemoryStore({ clock });
    const limiter = limiterOn(clock, rule, store);
    const other = limiterOn(clock, { ...rule, scope: 'sms' }, store);
    const decision = await limiter.consume('alice', { cost: 4 });
    expect(await other.refund('alice', decision)).toMatchObject({ scope: 'sms', remaining: 10 });
    expect(await limiter.refund('alice', decision)).toMatchObject({ remaining: 10 });
  });

  test('only looks where nothing was taken', async () => {
    const limiter = limiterOn(clock, { ...rule, blockSec: 60 });
    await limiter.consume('alice', { cost: 10 });
    const refused = await limiter.consume('alice');
    expect(await limiter.refund('alice', refused)).toMatchObject({ reason: 'blocked', retryAfterMs: 60_000 });
    expect(await limiter.refund('bob', await limiter.peek('bob'))).toMatchObject({ remaining: 10 });
  });

  test('of a receipt of reserve does nothing, and leaves it to be settled', async () => {
    const limiter = limiterOn(clock, rule);
    const { decision } = await limiter.reserve('alice', { cost: 4 });
    expect(await limiter.refund('alice', decision)).toMatchObject({ remaining: 6 });
    expect(await limiter.settle('alice', decision, 1)).toMatchObject({ remaining: 9 });
  });

  test('settle of a receipt of consume does nothing, and leaves it to be refunded', async () => {
    const limiter = limiterOn(clock, rule);
    const decision = await limiter.consume('alice', { cost: 4 });
    expect(await limiter.settle('alice', decision, 9)).toMatchObject({ remaining: 6 });
    expect(await limiter.refund('alice', decision)).toMatchObject({ remaining: 10 });
  });

  test('comes too late for a window that is over', async () => {
    const limiter = limiterOn(clock, rule);
    const decision = await limiter.consume('alice', { cost: 4 });
    clock.advance(60_000);
    await limiter.consume('alice', { cost: 4 });
    expect(await limiter.refund('alice', decision)).toMatchObject({ remaining: 6 });
  });

  test('that throws has spent nothing', async () => {
    const limiter = limiterOn(clock, rule);
    const decision = await limiter.consume('alice', { cost: 4 });
    await expect(limiter.refund('', decision)).rejects.toMatchObject({ code: 'ERR_LIMITKEEPER_SUBJECT' });
    await expect(limiter.refund('alice', decision, NaN)).rejects.toMatchObject({
      code: 'ERR_LIMITKEEPER_COST',
    });
    await expect(limiter.refund('alice', decision, { nobody: 1 })).rejects.toMatchObject({
      code: 'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
    });
    expect(await limiter.refund('alice', decision)).toMatchObject({ remaining: 10 });
  });
});

describe('several rules', () => {
  const rules = [
    { ...rule, scope: 'a' },
    { ...rule, scope: 'b' },
    { ...rule, scope: 'c', mode: 'shadow' as const },
  ];

  test('each gets back what it gave; a scope missing in a map is one unit', async () => {
    const limiter = limiterOn(clock, { rules });
    const decision = await limiter.consume('alice', { cost: { a: 5, b: 7 } });
    expect(decision.readings.map(({ remaining }) => remaining)).toEqual([5, 3, 9]);
    const after = await limiter.refund('alice', decision, { a: 2, b: 0 });
    expect(after.readings.map(({ remaining }) => remaining)).toEqual([7, 3, 10]);
  });

  test('a shadow rule that would have refused gave nothing, and gets nothing', async () => {
    const limiter = limiterOn(clock, { rules });
    await limiter.consume('alice', { cost: { a: 1, b: 1, c: 8 } });
    const decision = await limiter.consume('alice', { cost: 3 });
    expect(decision.receipt?.rules.map(({ scope }) => scope)).toEqual(['a', 'b']);
    const after = await limiter.refund('alice', decision);
    expect(after.readings.map(({ remaining }) => remaining)).toEqual([9, 9, 2]);
  });

  test('a reservation settles each rule with its own cost', async () => {
    const limiter = limiterOn(clock, { rules });
    const reservation = await limiter.reserve('alice', { cost: 6 });
    const after = await reservation.settle({ a: 2, b: 9 });
    expect(after.readings.map(({ remaining }) => remaining)).toEqual([8, 1, 9]);
  });

  test('subjects by scope find their way back', async () => {
    const limiter = limiterOn(clock, { rules });
    const subjects = { a: 'alice', b: ['alice', '203.0.113.7'], c: 7n };
    const decision = await limiter.consume(subjects, { cost: 4 });
    const after = await limiter.refund(subjects, overJson(decision));
    expect(after.readings.map(({ remaining }) => remaining)).toEqual([10, 10, 10]);
  });
});

describe('a plan that changed since', () => {
  const scope = 'api';
  const free = { limit: 10, windowSec: 60 };
  const pro = { limit: 100, windowSec: 3600 };

  test('the receipt goes back to the counter that it came from', async () => {
    const limiter = limiterOn(clock, { scope, algorithm: 'fixed-window' });
    const decision = await limiter.consume('alice', { cost: 5, plan: free });
    await limiter.consume('alice', { cost: 50, plan: pro });
    await limiter.refund('alice', overJson(decision));
    expect(await limiter.peek('alice', { plan: free })).toMatchObject({ remaining: 10 });
    expect(await limiter.peek('alice', { plan: pro })).toMatchObject({ remaining: 50 });
  });

  test('the same of a reservation, in a bucket with a burst of its own', async () => {
    const limiter = limiterOn(clock, { scope, algorithm: 'token-bucket' });
    const plan = { limit: 1, windowSec: 1, burst: 10 };
    const { decision } = await limiter.reserve('alice', { cost: 8, plan });
    expect(await limiter.peek('alice', { plan })).toMatchObject({ remaining: 2 });
    await limiter.settle('alice', overJson(decision), 1);
    expect(await limiter.peek('alice', { plan })).toMatchObject({ remaining: 9 });
  });

  test('a window in fractions of a second comes back as the same counter', async () => {
    const limiter = limiterOn(clock, { scope, algorithm: 'fixed-window' });
    for (const windowSec of [0.001, 0.1 + 0.2, 1.1, 59.999, 2_591_999.999]) {
      const plan = { limit: 10, windowSec };
      const decision = await limiter.consume('alice', { cost: 4, plan });
      await limiter.refund('alice', overJson(decision));
      expect(await limiter.peek('alice', { plan })).toMatchObject({ remaining: 10 });
    }
  });

  test('where the rule is off by now, nothing happens', async () => {
    const store = new MemoryStore({ clock });
    const decision = await limiterOn(clock, rule, store).consume('alice', { cost: 4 });
    const off = limiterOn(clock, { ...rule, mode: 'off' }, store);
    expect(await off.refund('alice', decision)).toMatchObject({ allowed: true, readings: [] });
    expect(await limiterOn(clock, rule, store).refund('alice', decision)).toMatchObject({ remaining: 10 });
  });
});

describe('what is no receipt is refused, and reaches no store', () => {
  const sound = {
    id: 'x',
    kind: 'consume',
    at: NOON,
    rules: [{ scope: 'mail', cost: 1, plan: { limit: 10, windowSec: 60 } }],
  };
  const [entry] = sound.rules;

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a text', 'receipt'],
    ['a number', 4],
    ['an empty object', {}],
    ['an array', []],
    ['a decision whose receipt is null', { allowed: true, receipt: null }],
    ['a kind that nobody knows', { ...sound, kind: 'charge' }],
    ['no id', { ...sound, id: undefined }],
    ['a time that is none', { ...sound, at: NaN }],
    ['a time as text', { ...sound, at: String(NOON) }],
    ['a time before time', { ...sound, at: -1 }],
    ['a broken time', { ...sound, at: 0.5 }],
    ['no rules', { ...sound, rules: undefined }],
    ['rules that are none', { ...sound, rules: [null] }],
    ['a negative cost', { ...sound, rules: [{ ...entry, cost: -5 }] }],
    ['a cost as text', { ...sound, rules: [{ ...entry, cost: '5' }] }],
    ['a broken cost', { ...sound, rules: [{ ...entry, cost: 0.5 }] }],
    ['no plan', { ...sound, rules: [{ ...entry, plan: undefined }] }],
  ])('%s', async (_what, receipt) => {
    const limiter = limiterOn(clock, rule);
    await limiter.consume('alice', { cost: 4 });
    const before = await limiter.inspect('alice');
    for (const call of [
      () => limiter.refund('alice', receipt as Receipt),
      () => limiter.settle('alice', receipt as Receipt, 1),
    ]) {
      await expect(call()).rejects.toMatchObject({ name: 'TypeError', code: 'ERR_LIMITKEEPER_RECEIPT' });
    }
    expect(await limiter.inspect('alice')).toEqual(before);
  });

  test.each<[string, object]>([
    ['no numbers', { limit: 'many', windowSec: 60 }],
    ['a window that is none', { limit: 10, windowSec: 0 }],
    ['names of its own', { limit: 10, windowSec: 60, color: 'red' }],
  ])('a plan with %s', async (_what, plan) => {
    const limiter = limiterOn(clock, rule);
    const receipt = { ...sound, rules: [{ ...entry, plan }] } as unknown as Receipt;
    await expect(limiter.refund('alice', receipt)).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_LIMITKEEPER_/),
    });
  });

  test('the reservation itself, in place of its decision, is said to be none', async () => {
    const limiter = limiterOn(clock, rule);
    const reservation = await limiter.reserve('alice');
    await expect(limiter.settle('alice', reservation as unknown as Receipt, 1)).rejects.toMatchObject({
      code: 'ERR_LIMITKEEPER_RECEIPT',
      message: expect.stringContaining('the decision'),
    });
  });
});

test('spent receipts are remembered within a bound, the oldest forgotten first', () => {
  const spent = spentReceipts();
  for (let i = 0; i < 10_000; i += 1) expect(spent.spend(`receipt ${String(i)}`)).toBe(true);
  expect(spent.spend('receipt 0')).toBe(false);
  expect(spent.spend('one more')).toBe(true);
  expect(spent.spend('receipt 1')).toBe(false);
  expect(spent.spend('receipt 0')).toBe(true);
});
