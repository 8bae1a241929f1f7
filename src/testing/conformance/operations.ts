import { applyBatch } from '../batch.js';
import { strict as assert } from 'node:assert';
import { ALICE, BOB, expectReading, rule } from './world.js';
import type { Clause, World } from './world.js';

/** Capacity × window just within 2^52, and the debt as long again: it ends beyond 2^53. */
const LONGEST_DEBT = rule({
  scope: 'budget',
  algorithm: 'token-bucket',
  limit: 1,
  windowSec: 31_536_000,
  burst: 142_808,
});

export const operationClauses: readonly Clause[] = [
  {
    promise: 'consume takes units until the limit, and a refusal takes none',
    async check(world) {
      const counted = rule();
      expectReading(await world.consume(counted, 2), { allowed: true, reason: 'ok', limit: 3, remaining: 1 });
      expectReading(await world.consume(counted, 2), { allowed: false, reason: 'limit', remaining: 1 });
      expectReading(await world.consume(counted, 1), { allowed: true, remaining: 0 });
    },
  },
  {
    promise: 'peek answers as things stand and changes nothing',
    async check(world) {
      const counted = rule({ blockSec: 60 });
      expectReading(await world.peek(counted, 3), { allowed: true, remaining: 3, moreAfterMs: 0 });
      await world.consume(counted, 3);
      expectReading(await world.peek(counted), { allowed: false, reason: 'limit', remaining: 0 });
      // The look started no block.
      expectReading(await world.peek(counted), { reason: 'limit' });
    },
  },
  {
    promise: 'a cost of 0 passes and counts nothing',
    async check(world) {
      const counted = rule();
      await world.consume(counted, 3);
      expectReading(await world.consume(counted, 0), { allowed: true, reason: 'ok', remaining: 0 });
      await world.charge(counted, 1);
      expectReading(await world.consume(counted, 0), { allowed: false, reason: 'limit' }, 'in debt:');
    },
  },
  {
    promise: 'a cost above the capacity can never pass, and starts no block',
    async check(world) {
      const counted = rule({ blockSec: 60 });
      expectReading(await world.consume(counted, 4), { allowed: false, reason: 'cost', retryAfterMs: null });
      expectReading(await world.consume(counted, 3), { allowed: true, reason: 'ok' });
    },
  },
  {
    promise: 'a limit of 0 refuses everything',
    async check(world) {
      const nothing = rule({ limit: 0 });
      expectReading(await world.consume(nothing), { allowed: false, retryAfterMs: null, moreAfterMs: null });
    },
  },
  {
    promise: 'the longest debt there can be leaves what else is kept of the subject as it was',
    async check(world) {
      const blocked = rule();
      await world.block(blocked, null);
      expectReading(await world.charge(LONGEST_DEBT, 1_000_000), { allowed: false, remaining: 0 });
      expectReading(await world.peek(LONGEST_DEBT), { allowed: false, reason: 'limit', remaining: 0 });
      expectReading(await world.peek(blocked), { allowed: false, reason: 'blocked' });
    },
  },
  {
    promise: 'the longest debt there can be is told to the millisecond',
    needs: ['clock'],
    async check(world) {
      // 142,808 units past the capacity and as many within it, each of which takes a year.
      const [past, all] = [4_503_593_088_000_000, 9_007_186_176_000_000];
      expectReading(await world.charge(LONGEST_DEBT, 1_000_000), { resetAfterMs: all });
      // At an odd and at an even time: their sum with the wait is beyond 2^53, where only even numbers are exact.
      for (const waited of [1, 2]) {
        world.clock.advance(1);
        expectReading(await world.peek(LONGEST_DEBT, 0), {
          retryAfterMs: past - waited,
          resetAfterMs: all - waited,
        });
      }
    },
  },
  {
    promise: 'reserve holds units, settle charges what was really used',
    async check(world) {
      const counted = rule();
      const { at } = await reserveTwo(world);
      expectReading(await world.peek(counted, 2), { allowed: false, reason: 'held', remaining: 1 });
      const settle = { type: 'settle', at, held: 2, actual: 1 } as const;
      expectReading(await world.decide(counted, settle), { allowed: true, remaining: 2 });
    },
  },
  {
    promise: 'settling 0 releases the reservation',
    async check(world) {
      const { at } = await reserveTwo(world);
      const release = { type: 'settle', at, held: 2, actual: 0 } as const;
      expectReading(await world.decide(rule(), release), { remaining: 3, resetAfterMs: 0 });
    },
  },
  {
    promise: 'charge and settle go past the limit, up to twice the capacity',
    async check(world) {
      const counted = rule();
      const { at } = await reserveTwo(world);
      const settle = { type: 'settle', at, held: 2, actual: 1000 } as const;
      const settled = await applyBatch(world.store, [{ rule: counted, subject: ALICE, operation: settle }]);
      assert.deepEqual(
        settled.readings.map(({ reason, remaining }) => [reason, remaining]),
        [['limit', 0]],
      );
      // 6 are used, not 1,000: after giving back 4, one is left.
      const refund = { type: 'refund', at: settled.at, units: 4 } as const;
      expectReading(await world.decide(counted, refund), { allowed: true, remaining: 1 });
    },
  },
  {
    promise: 'refund gives units back, never more than are used',
    async check(world) {
      const counted = rule();
      const { at } = await applyBatch(world.store, [
        { rule: counted, subject: BOB, operation: { type: 'consume', cost: 3 } },
      ]);
      const refund = { type: 'refund', at, units: 2 } as const;
      expectReading(await world.decide(counted, refund, BOB), { remaining: 2 });
      expectReading(await world.decide(counted, refund, BOB), { remaining: 3, resetAfterMs: 0 });
      expectReading(await world.consume(counted, 3, BOB), { allowed: true, remaining: 0 });
    },
  },
  {
    promise: 'a refund of an unknown subject creates nothing',
    async check(world) {
      const refund = { type: 'refund', at: await world.now(), units: 2 } as const;
      expectReading(await world.decide(rule(), refund), { remaining: 3 });
      assert.deepEqual(await world.store.inspect(ALICE.hash), []);
    },
  },
  {
    promise: 'reset forgets counter, holds and block',
    async check(world) {
      const counted = rule({ blockSec: 60 });
      await reserveTwo(world);
      await world.consume(counted, 1);
      await world.block(counted, 60_000);
      expectReading(await world.decide(counted, { type: 'reset' }), { allowed: true, remaining: 3 });
      assert.deepEqual(await world.store.inspect(ALICE.hash), []);
    },
  },
  {
    promise: 'forgive forgets counter and automatic block; a manual block stays',
    async check(world) {
      const counted = rule({ blockSec: 60 });
      await world.charge(counted, 3);
      expectReading(await world.peek(counted), { reason: 'blocked' });
      expectReading(await world.decide(counted, { type: 'forgive' }), { allowed: true, remaining: 3 });
      await world.block(counted, 60_000);
      expectReading(await world.decide(counted, { type: 'forgive' }), { allowed: false, reason: 'blocked' });
    },
  },
  {
    promise: 'a refund reaches only the window that the units were counted in',
    needs: ['clock'],
    async check(world) {
      const counted = rule();
      const at = world.clock.now();
      await world.consume(counted, 3);
      world.clock.advance(3_600_000);
      await world.consume(counted, 3);
      expectReading(await world.decide(counted, { type: 'refund', at, units: 3 }), { remaining: 0 });
    },
  },
  {
    promise: 'a hold lapses by itself, between one and two times its length later',
    needs: ['clock'],
    async check(world) {
      const counted = rule({ holdSec: 10 });
      world.clock.advance(1);
      await world.reserve(counted, 3);
      // Made 1 ms into a span of 10 s, it lapses at the end of the next one.
      expectReading(await world.peek(counted), {
        reason: 'held',
        retryAfterMs: 19_999,
        resetAfterMs: 19_999,
      });
      world.clock.advance(19_998);
      expectReading(await world.peek(counted), { reason: 'held', retryAfterMs: 1 });
      world.clock.advance(1);
      expectReading(await world.consume(counted, 3), { allowed: true });
    },
  },
  {
    promise: 'settling a hold that has lapsed takes nothing off others',
    needs: ['clock'],
    async check(world) {
      const counted = rule({ holdSec: 10 });
      const at = world.clock.now();
      await world.reserve(counted, 2);
      world.clock.advance(20_000);
      await world.reserve(counted, 2);
      await world.decide(counted, { type: 'settle', at, held: 2, actual: 0 });
      expectReading(await world.peek(counted, 2), { reason: 'held', remaining: 1 });
    },
  },
];

function reserveTwo(world: World) {
  return applyBatch(world.store, [{ rule: rule(), subject: ALICE, operation: { type: 'reserve', cost: 2 } }]);
}
