import { applyBatch } from '../batch.js';
import { strict as assert } from 'node:assert';
import { ALICE, BOB, expectReading, rule, START } from './world.js';
import type { Clause } from './world.js';

const DAY = 86_400_000;

export const blockClauses: readonly Clause[] = [
  {
    promise: 'a refusal starts the block, which is told at once and not counted into',
    async check(world) {
      const counted = rule({ limit: 1, windowSec: 60, blockSec: 7200 });
      await world.consume(counted);
      expectReading(await world.consume(counted), { reason: 'limit', retryAfterMs: 7_200_000 });
      expectReading(await world.peek(counted, 0), { allowed: false, reason: 'blocked', remaining: 0 });
      expectReading(await world.peek(counted, 1, BOB), { allowed: true });
    },
  },
  {
    promise: 'the charge that reaches the limit starts the block: the last counted failure announces it',
    async check(world) {
      const counted = rule({ limit: 2, blockSec: 60 });
      expectReading(await world.charge(counted), { allowed: true, remaining: 1 });
      const { blockStarted, readings } = await applyBatch(world.store, [
        { rule: counted, subject: ALICE, operation: { type: 'charge', units: 1 } },
      ]);
      assert.deepEqual([...blockStarted], [0]);
      assert.equal(readings[0]?.reason, 'blocked');
    },
  },
  {
    promise: 'a manual block replaces any that stands, unblock ends it',
    async check(world) {
      const counted = rule();
      expectReading(await world.block(counted, null), {
        reason: 'blocked',
        retryAfterMs: null,
        resetAfterMs: null,
      });
      await world.block(counted, 7_200_000);
      expectReading(await world.consume(counted), { reason: 'blocked' });
      expectReading(await world.decide(counted, { type: 'unblock' }), { allowed: true, remaining: 3 });
    },
  },
  {
    promise: 'a block ends to the millisecond and is not prolonged by trying',
    needs: ['clock'],
    async check(world) {
      const counted = rule({ limit: 1, windowSec: 1, blockSec: 60 });
      await world.consume(counted);
      await world.consume(counted);
      world.clock.advance(59_999);
      expectReading(await world.consume(counted), { reason: 'blocked', retryAfterMs: 1 });
      world.clock.advance(1);
      expectReading(await world.consume(counted), { allowed: true });
    },
  },
  {
    promise: 'a ladder climbs, stays on its last rung, and is forgotten 24 h after the block',
    needs: ['clock'],
    async check(world) {
      const counted = rule({ limit: 1, windowSec: 1, blockSec: [60, 300] });
      for (const blockMs of [60_000, 300_000, 300_000]) {
        await world.consume(counted);
        expectReading(await world.consume(counted), { reason: 'limit', retryAfterMs: blockMs });
        world.clock.advance(blockMs);
      }
      world.clock.advance(DAY - 1);
      await world.consume(counted);
      expectReading(
        await world.consume(counted),
        { retryAfterMs: 300_000 },
        '1 ms before the strikes are forgotten:',
      );
      world.clock.advance(300_000 + DAY);
      await world.consume(counted);
      expectReading(await world.consume(counted), { retryAfterMs: 60_000 }, '24 h after the block:');
    },
  },
  {
    promise: 'unblock forgets the strikes',
    needs: ['clock'],
    async check(world) {
      const counted = rule({ limit: 1, windowSec: 1, blockSec: [60, 300] });
      await world.consume(counted);
      await world.consume(counted);
      await world.decide(counted, { type: 'unblock' });
      expectReading(await world.consume(counted), { reason: 'limit', retryAfterMs: 60_000 });
    },
  },
  {
    promise: 'a block of 30 days and one of ten years hold',
    needs: ['clock'],
    async check(world) {
      const counted = rule();
      await world.block(counted, 30 * DAY);
      await world.block(counted, 3652 * DAY, BOB);
      world.clock.set(START + 30 * DAY - 1);
      expectReading(await world.consume(counted), { reason: 'blocked', retryAfterMs: 1 });
      world.clock.set(START + 3652 * DAY - 1);
      expectReading(await world.consume(counted, 1, BOB), { reason: 'blocked', retryAfterMs: 1 });
      world.clock.advance(1);
      expectReading(await world.consume(counted, 1, BOB), { allowed: true });
    },
  },
  {
    promise: 'a block for ever outlasts a hundred years',
    needs: ['clock'],
    async check(world) {
      await world.block(rule(), null);
      world.clock.advance(36_524 * DAY);
      expectReading(await world.consume(rule()), { reason: 'blocked', retryAfterMs: null });
    },
  },
  {
    promise: 'a clock that steps back lengthens a block by no more than the step',
    needs: ['clock'],
    async check(world) {
      await world.block(rule(), 60_000);
      world.clock.advance(-5000);
      expectReading(await world.consume(rule()), { reason: 'blocked', retryAfterMs: 65_000 });
    },
  },
];
