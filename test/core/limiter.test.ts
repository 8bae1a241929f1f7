import type { Limiter } from '../../src/core/limiter.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { subjectHash } from '../../src/core/subject.js';
import { limiterOn } from '../support/limiters.js';
import { NOON } from '../support/decisions.js';

let clock: FakeClock;
beforeEach(() => {
  clock = new FakeClock(NOON);
});

/** Ten a minute from the first unit on, and a block of 2 minutes, then 5. */
const fixed = {
  scope: 'mail',
  limit: 10,
  windowSec: 60,
  algorithm: 'fixed-window',
  blockSec: [120, 300],
} as const;

async function peeked(limiter: Limiter, subject = 'alice') {
  const { allowed, reason, remaining, retryAfterMs } = await limiter.peek(subject);
  return { allowed, reason, remaining, retryAfterMs };
}

const open = (remaining: number) => ({ allowed: true, reason: 'ok', remaining, retryAfterMs: 0 });
const blocked = (retryAfterMs: number | null) => ({
  allowed: false,
  reason: 'blocked',
  remaining: 0,
  retryAfterMs,
});

describe('consume', () => {
  test('takes the cost, and tells of the state after it', async () => {
    const limiter = limiterOn(clock, fixed);
    clock.advance(5);
    expect(await limiter.consume('alice', { cost: 3 })).toEqual({
      allowed: true,
      reason: 'ok',
      scope: 'mail',
      limit: 10,
      remaining: 7,
      retryAfterMs: 0,
      moreAfterMs: 60_000,
      resetAfterMs: 60_000,
      at: NOON + 5,
      readings: [
        {
          scope: 'mail',
          allowed: true,
          reason: 'ok',
          limit: 10,
          remaining: 7,
          retryAfterMs: 0,
          moreAfterMs: 60_000,
          resetAfterMs: 60_000,
          windowMs: 60_000,
          shadow: false,
        },
      ],
      receipt: {
        id: expect.any(String),
        kind: 'consume',
        at: NOON + 5,
        rules: [
          {
            scope: 'mail',
            cost: 3,
            plan: { limit: 10, windowSec: 60, blockSec: [120, 300] },
          },
        ],
      },
    });
  });

  test('a refusal is a value: it counts nothing, hands out no receipt, and starts the block', async () => {
    const limiter = limiterOn(clock, fixed);
    await limiter.consume('alice', { cost: 8 });
    const refused = await limiter.consume('alice', { cost: 3 });
    expect(refused).toMatchObject({ allowed: false, reason: 'limit', scope: 'mail', retryAfterMs: 120_000 });
    expect(refused).not.toHaveProperty('receipt');
    clock.advance(120_000);
    expect(await peeked(limiter)).toEqual(open(10));
  });

  test('subjects do not know each other', async () => {
    const limiter = limiterOn(clock, fixed);
    await limiter.consume('alice', { cost: 10 });
    expect(await peeked(limiter, 'bob')).toEqual(open(10));
    expect((await limiter.consume('bob')).allowed).toBe(true);
  });

  test('200 at once against a limit of 50 let 50 pass', async () => {
    const limiter = limiterOn(clock, { scope: 'a', limit: 50, windowSec: 60 });
    const decisions = await Promise.all(Array.from({ length: 200 }, () => limiter.consume('alice')));
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(50);
  });

  test('takes the cost that the rule states where the call states none', async () => {
    const limiter = limiterOn(clock, { ...fixed, cost: 4 });
    expect(await limiter.consume('alice')).toMatchObject({ remaining: 6 });
    expect(await limiter.consume('alice', { cost: 1 })).toMatchObject({ remaining: 5 });
    // And peek asks for the same.
    expect(await limiter.consume('alice', { cost: 2 })).toMatchObject({ remaining: 3 });
    expect(await limiter.peek('alice')).toMatchObject({ allowed: false, reason: 'limit' });
  });

  test('a cost of 0 passes and takes nothing', async () => {
    const limiter = limiterOn(clock, { scope: 'a', limit: 1, windowSec: 60 });
    await limiter.consume('alice');
    expect(await limiter.consume('alice', { cost: 0 })).toMatchObject({ allowed: true, remaining: 0 });
  });

  test('a limit of 0 refuses everything, for ever', async () => {
    const limiter = limiterOn(clock, { scope: 'a', limit: 0, windowSec: 60 });
    expect(await limiter.consume('alice')).toMatchObject({
      allowed: false,
      reason: 'cost',
      limit: 0,
      retryAfterMs: null,
      moreAfterMs: null,
    });
  });
});

describe('peek', () => {
  test('changes nothing: not the counter, not a block, however often, also right after a refusal', async () => {
    const store = new MemoryStore({ clock });
    const limiter = limiterOn(clock, fixed, store);
    await limiter.consume('alice', { cost: 10 });
    const before = await limiter.inspect('alice');
    for (let i = 0; i < 20; i += 1) {
      expect(await limiter.peek('alice')).toMatchObject({ allowed: false, reason: 'limit' });
      expect(await limiter.peek('bob')).toMatchObject({ allowed: true, remaining: 10 });
    }
    expect(await limiter.inspect('alice')).toEqual(before);
    expect(await limiter.inspect('bob')).toEqual([]);
    expect(store.size).toBe(1);

    await limiter.consume('alice');
    const standing = await limiter.inspect('alice');
    clock.advance(1000);
    expect(await peeked(limiter)).toEqual(blocked(119_000));
    expect(await limiter.inspect('alice')).toEqual(standing);
  });

  test('hands out no receipt', async () => {
    expect(await limiterOn(clock, fixed).peek('alice')).not.toHaveProperty('receipt');
  });

  test('answers for the cost that is asked for', async () => {
    const limiter = limiterOn(clock, fixed);
    await limiter.consume('alice', { cost: 7 });
    expect(await limiter.peek('alice', { cost: 3 })).toMatchObject({ allowed: true, remaining: 3 });
    expect(await limiter.peek('alice', { cost: 4 })).toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    expect(await limiter.peek('alice', { cost: 11 })).toMatchObject({ reason: 'cost', retryAfterMs: null });
  });
});

describe('reserve', () => {
  test('holds, and settles with the real cost', async () => {
    const limiter = limiterOn(clock, { ...fixed, blockSec: 0 });
    const reservation = await limiter.reserve('alice', { cost: 8 });
    expect(reservation.decision).toMatchObject({ allowed: true, remaining: 2 });
    expect(await limiter.consume('alice', { cost: 3 })).toMatchObject({ allowed: false, reason: 'held' });
    expect(await reservation.settle(5)).toMatchObject({ allowed: true, remaining: 5 });
    expect(await peeked(limiter)).toEqual(open(5));
  });

  test('release gives everything back', async () => {
    const limiter = limiterOn(clock, fixed);
    const reservation = await limiter.reserve('alice', { cost: 10 });
    expect(await peeked(limiter)).toMatchObject({ allowed: false, reason: 'held' });
    await reservation.release();
    expect(await peeked(limiter)).toEqual(open(10));
    expect(await limiter.inspect('alice')).toEqual([]);
  });

  test('is settled once: what follows only tells how things stand', async () => {
    const limiter = limiterOn(clock, fixed);
    const reservation = await limiter.reserve('alice', { cost: 4 });
    await reservation.settle(4);
    expect(await reservation.settle(4)).toMatchObject({ remaining: 6 });
    expect(await reservation.release()).toMatchObject({ remaining: 6 });
  });

  test('may cost more than was held: the debt is bounded by twice the capacity, and starts the block', async () => {
    const limiter = limiterOn(clock, fixed);
    const reservation = await limiter.reserve('alice', { cost: 1 });
    expect(await reservation.settle(1000)).toMatchObject({
      allowed: false,
      reason: 'blocked',
      retryAfterMs: 120_000,
    });
    clock.advance(59_999);
    const [stored] = await limiter.inspect('alice');
    expect(stored?.cell.counters[0]?.state).toEqual([NOON, 20]);
  });

  test('that is left alone lapses: between holdSec and twice that later', async () => {
    // NOON is a multiple of 20 s: made 7 s later, the hold lapses at (0 + 2) × 20 s.
    clock.set(Math.floor(NOON / 20_000) * 20_000 + 7000);
    const limiter = limiterOn(clock, { ...fixed, holdSec: 20 });
    await limiter.reserve('alice', { cost: 10 });
    expect(await peeked(limiter)).toEqual({
      allowed: false,
      reason: 'held',
      remaining: 0,
      retryAfterMs: 33_000,
    });
    clock.advance(32_999);
    expect((await limiter.peek('alice')).allowed).toBe(false);
    clock.advance(1);
    expect(await peeked(limiter)).toEqual(open(10));
  });

  test('a refused one has nothing to settle', async () => {
    const limiter = limiterOn(clock, { ...fixed, blockSec: 0 });
    await limiter.consume('alice', { cost: 9 });
    const refused = await limiter.reserve('alice', { cost: 2 });
    expect(refused.decision).toMatchObject({ allowed: false, reason: 'limit' });
    expect(await refused.settle(2)).toMatchObject({ allowed: true, remaining: 1 });
    expect(await refused.release()).toMatchObject({ remaining: 1 });
  });

  test('a settle that is refused for its number may be repeated with the right one', async () => {
    const limiter = limiterOn(clock, fixed);
    const reservation = await limiter.reserve('alice', { cost: 4 });
    for (const wrong of [NaN, -1, 1.5, Infinity, '4', null, [4]]) {
      await expect(reservation.settle(wrong as number)).rejects.toMatchObject({
        code: 'ERR_LIMITKEEPER_COST',
      });
    }
    expect(await reservation.settle(1)).toMatchObject({ remaining: 9 });
  });

  test('belongs to the subject as it was, also if the array of its parts is changed since', async () => {
    const limiter = limiterOn(clock, fixed);
    const key = ['alice', 'phone'];
    const reservation = await limiter.reserve(key, { cost: 4 });
    key[1] = 'desk';
    await reservation.settle(3);
    expect(await limiter.peek(['alice', 'phone'])).toMatchObject({ remaining: 7 });
    expect(await limiter.peek(['alice', 'desk'])).toMatchObject({ remaining: 10 });
  });
});

describe('charge', () => {
  test('adds 1, or n, past the limit; reaching it starts the block', async () => {
    const limiter = limiterOn(clock, fixed);
    expect(await limiter.charge('alice')).toMatchObject({ allowed: true, remaining: 9 });
    expect(await limiter.charge('alice', 8)).toMatchObject({ allowed: true, remaining: 1 });
    expect(await limiter.charge('alice', 0)).toMatchObject({ remaining: 1 });
    expect(await limiter.charge('alice', 1)).toMatchObject({ reason: 'blocked', retryAfterMs: 120_000 });
  });
});

describe('block and unblock', () => {
  test.each([
    [30, 30_000],
    [0.5, 500],
    ['forever', null],
  ] as const)('block(%p) by hand', async (sec, ms) => {
    const limiter = limiterOn(clock, fixed);
    expect(await limiter.block('alice', sec)).toMatchObject({
      allowed: false,
      reason: 'blocked',
      retryAfterMs: ms,
    });
    expect(await peeked(limiter)).toEqual(blocked(ms));
    expect(await peeked(limiter, 'bob')).toEqual(open(10));
    if (ms === null) clock.advance(1e12);
    else clock.advance(ms - 1);
    expect((await limiter.peek('alice')).allowed).toBe(false);
    if (ms === null) return;
    clock.advance(1);
    expect((await limiter.peek('alice')).allowed).toBe(true);
  });

  test('a block by hand replaces any that stands', async () => {
    const limiter = limiterOn(clock, fixed);
    await limiter.block('alice', 'forever');
    expect(await limiter.block('alice', 1)).toMatchObject({ retryAfterMs: 1000 });
  });

  test('unblock ends it and forgets the strikes, the counter stays', async () => {
    const limiter = limiterOn(clock, fixed);
    await limiter.consume('alice', { cost: 10 });
    expect(await limiter.consume('alice')).toMatchObject({ retryAfterMs: 120_000 });
    expect(await limiter.unblock('alice')).toMatchObject({ allowed: true, reason: 'ok', remaining: 0 });
    expect(await peeked(limiter)).toMatchObject({ reason: 'limit' });
    // The first rung again.
    expect(await limiter.consume('alice')).toMatchObject({ retryAfterMs: 120_000 });
  });

  test.each([0, -1, NaN, Infinity, 0.0005, '60', null, undefined, 'for ever', [60]])(
    'block(%p) is refused',
    async sec => {
      const limiter = limiterOn(clock, fixed);
      await expect(limiter.block('alice', sec as number)).rejects.toMatchObject({
        code: expect.stringMatching(/^ERR_LIMITKEEPER_OPTION_(TYPE|RANGE)$/),
        option: expect.stringContaining('sec'),
      });
      expect(await peeked(limiter)).toEqual(open(10));
    },
  );
});

describe('reset and forgive', () => {
  test('reset forgets counter, holds, block and strikes', async () => {
    const limiter = limiterOn(clock, fixed);
    await limiter.reserve('alice', { cost: 5 });
    await limiter.consume('alice', { cost: 5 });
    await limiter.block('alice', 'forever');
    expect(await limiter.reset('alice')).toMatchObject({ allowed: true, remaining: 10 });
    expect(await limiter.inspect('alice')).toEqual([]);
  });

  test('forgive does the same, but a block by hand stays', async () => {
    const limiter = limiterOn(clock, fixed);
    await limiter.consume('alice', { cost: 10 });
    await limiter.consume('alice');
    expect(await limiter.forgive('alice')).toMatchObject({ allowed: true, remaining: 10 });
    expect(await limiter.inspect('alice')).toEqual([]);

    await limiter.consume('alice', { cost: 10 });
    await limiter.block('alice', 60);
    expect(await limiter.forgive('alice')).toMatchObject({ reason: 'blocked', retryAfterMs: 60_000 });
    await limiter.unblock('alice');
    expect(await peeked(limiter)).toEqual(open(10));
  });
});

describe('inspect', () => {
  test('shows all that is stored of a subject, in every scope of the store, and writes nothing', async () => {
    const store = new MemoryStore({ clock });
    const mail = limiterOn(clock, fixed, store);
    const sms = limiterOn(clock, { scope: 'sms', limit: 3, windowSec: 60 }, store);
    await mail.consume('alice', { cost: 2 });
    await sms.block('alice', 60);
    const cells = await mail.inspect('alice');
    expect(cells.map(({ scope }) => scope).sort()).toEqual(['mail', 'sms']);
    expect(await sms.inspect('alice')).toEqual(cells);
    expect(await mail.inspect('bob')).toEqual([]);
    expect(store.size).toBe(2);
  });
});

describe('resetAll', () => {
  test('forgets every subject of its own scopes, and nobody else in a shared store', async () => {
    const store = new MemoryStore({ clock });
    const ours = limiterOn(
      clock,
      {
        rules: [fixed, { ...fixed, scope: 'sms', mode: 'off' }, { ...fixed, scope: 'push', mode: 'shadow' }],
      },
      store,
    );
    const theirs = limiterOn(clock, { ...fixed, scope: 'mailbox' }, store);
    for (const subject of ['alice', 'bob']) {
      await ours.consume(subject, { cost: 5 });
      await theirs.consume(subject, { cost: 5 });
    }
    await ours.block('bob', 'forever');
    await ours.resetAll();
    expect(await ours.peek('alice')).toMatchObject({ remaining: 10 });
    expect(await ours.peek('bob')).toMatchObject({ remaining: 10 });
    expect(await theirs.peek('alice')).toMatchObject({ remaining: 5 });
    expect(await theirs.peek('bob')).toMatchObject({ remaining: 5 });
  });
});

describe('what a limiter tells of itself', () => {
  test('its scopes and rules, in order', () => {
    const limiter = limiterOn(clock, {
      rules: [{ scope: 'planned' }, { ...fixed, mode: 'off' }, { scope: 'b', limit: 1, windowSec: 0.5 }],
    });
    expect(limiter.scopes).toEqual(['planned', 'mail', 'b']);
    expect(limiter.rules.map(({ scope }) => scope)).toEqual(['mail', 'b']);
    expect(limiter.rules[1]).toMatchObject({ limit: 1, windowMs: 500, capacity: 1 });
    expect(Object.isFrozen(limiter.rules[0])).toBe(true);
  });

  test('options that are changed after construction change nothing', async () => {
    const blockSec = [120, 300];
    const options = { scope: 'mail', windowSec: 60, limit: 10, algorithm: 'fixed-window', blockSec } as const;
    const planned = { scope: 'planned', algorithm: 'fixed-window', blockSec };
    const limiter = limiterOn(clock, { rules: [options, planned as never] });
    Object.assign(options, { limit: 1000, algorithm: 'nonsense' });
    Object.assign(planned, { algorithm: 'nonsense', mode: 'off' });
    blockSec.length = 0;
    const plan = { planned: { limit: 10, windowSec: 60 } };
    expect(await limiter.consume('alice', { cost: 10, plan })).toMatchObject({ allowed: true, remaining: 0 });
    const refused = await limiter.consume('alice', { plan });
    expect(refused.readings.map(({ retryAfterMs }) => retryAfterMs)).toEqual([120_000, 120_000]);
  });

  test('subjects are stored under their hashes only', async () => {
    const store = new MemoryStore({ clock });
    const limiter = limiterOn(clock, { ...fixed, hashSecret: 'pepper', store });
    await limiter.block('alice', 'forever');
    const { blocks } = store.blocked();
    expect(blocks).toHaveLength(1);
    expect(blocks[0]?.subjectHash).toBe(subjectHash('alice', 'pepper'));
    expect(JSON.stringify([blocks, await limiter.inspect('alice')])).not.toContain('alice');
  });
});
