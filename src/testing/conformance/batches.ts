import { applyBatch } from '../batch.js';
import { strict as assert } from 'node:assert';
import type { Operation } from '../../core/operation.js';
import { ALICE, BOB, expectReading, rule, subject } from './world.js';
import type { Clause } from './world.js';

const ONE: Operation = { type: 'consume', cost: 1 };

export const batchClauses: readonly Clause[] = [
  {
    promise: 'several rules are all or nothing: when one refuses, none is charged',
    async check(world) {
      const wide = rule({ scope: 'wide', limit: 100 });
      const narrow = rule({ scope: 'narrow', limit: 1 });
      const both = [wide, narrow].map(r => ({ rule: r, subject: ALICE, operation: ONE }));
      const first = await applyBatch(world.store, both);
      assert.deepEqual(
        first.readings.map(reading => reading.remaining),
        [99, 0],
      );
      const second = await applyBatch(world.store, both);
      assert.deepEqual(
        second.readings.map(({ scope, allowed, remaining }) => ({ scope, allowed, remaining })),
        [
          { scope: 'wide', allowed: true, remaining: 99 },
          { scope: 'narrow', allowed: false, remaining: 0 },
        ],
      );
    },
  },
  {
    promise: 'a batch over several subjects is all or nothing, too',
    async check(world) {
      await world.consume(rule(), 3, BOB);
      await applyBatch(
        world.store,
        [ALICE, BOB].map(who => ({ rule: rule(), subject: who, operation: ONE })),
      );
      expectReading(await world.peek(rule(), 1, ALICE), { remaining: 3 });
    },
  },
  {
    promise: 'when any refuses, each rule whose own verdict is limit starts its own block',
    async check(world) {
      const blocking = rule({ scope: 'blocking', limit: 1, blockSec: 60 });
      const other = rule({ scope: 'other', limit: 1, blockSec: 60 });
      const both = [blocking, other].map(r => ({ rule: r, subject: ALICE, operation: ONE }));
      await world.consume(blocking);
      const { readings, blockStarted } = await applyBatch(world.store, both);
      assert.deepEqual(
        readings.map(reading => reading.reason),
        ['limit', 'ok'],
      );
      assert.deepEqual([...blockStarted], [0]);
      expectReading(await world.peek(blocking), { reason: 'blocked' });
      expectReading(await world.peek(other), { reason: 'ok', remaining: 1 });
    },
  },
  {
    promise: 'a shadow rule counts and blocks, but refuses nothing',
    async check(world) {
      const shadow = rule({ scope: 'shadow', limit: 1, blockSec: 60, mode: 'shadow' });
      const enforced = rule({ scope: 'enforced', limit: 100 });
      const both = [shadow, enforced].map(r => ({ rule: r, subject: ALICE, operation: ONE }));
      const reasons: string[] = [];
      for (let i = 0; i < 3; i += 1) {
        const { readings } = await applyBatch(world.store, both);
        reasons.push(readings[0]?.reason ?? 'none');
      }
      assert.deepEqual(reasons, ['ok', 'limit', 'blocked']);
      expectReading(await world.peek(enforced), { remaining: 97 });
    },
  },
  {
    promise: 'each item has its own operation and cost',
    async check(world) {
      const [a, b, c] = [rule({ scope: 'a' }), rule({ scope: 'b' }), rule({ scope: 'c' })];
      const { readings } = await applyBatch(world.store, [
        { rule: a, subject: ALICE, operation: { type: 'consume', cost: 2 } },
        { rule: b, subject: ALICE, operation: { type: 'charge', units: 5 } },
        { rule: c, subject: BOB, operation: { type: 'peek', cost: 3 } },
      ]);
      assert.deepEqual(
        readings.map(({ scope, remaining }) => [scope, remaining]),
        [
          ['a', 1],
          ['b', 0],
          ['c', 3],
        ],
      );
    },
  },
  {
    promise: 'an empty batch is answered with no readings and the time',
    async check(world) {
      const { at, readings } = await applyBatch(world.store, []);
      assert.deepEqual([...readings], []);
      assert.ok(Number.isSafeInteger(at) && at > 0, `the time is ${String(at)}`);
    },
  },
  {
    promise: 'parallel calls admit exactly the limit',
    async check(world) {
      const counted = rule({ limit: 10, algorithm: 'sliding-window' });
      const readings = await Promise.all(Array.from({ length: 60 }, () => world.consume(counted)));
      assert.equal(readings.filter(reading => reading.allowed).length, 10);
      const remaining = readings.filter(reading => reading.allowed).map(reading => reading.remaining);
      assert.deepEqual(
        remaining.sort((x, y) => x - y),
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
      );
    },
  },
  {
    promise: 'parallel batches over rules of different subjects admit exactly the limit',
    async check(world) {
      const counted = rule({ scope: 'shared', limit: 10 });
      const own = rule({ scope: 'own', limit: 5 });
      const calls = Array.from({ length: 30 }, async (_, i) =>
        applyBatch(world.store, [
          { rule: own, subject: subject(`caller ${String(i % 3)}`), operation: ONE },
          { rule: counted, subject: ALICE, operation: ONE },
        ]),
      );
      const results = await Promise.all(calls);
      const admitted = results.filter(({ readings }) => readings.every(reading => reading.allowed));
      assert.equal(admitted.length, 10);
      expectReading(await world.peek(counted), { remaining: 0 });
    },
  },
  {
    promise: 'two stores of the same name count together, and stay exact in parallel',
    needs: ['shared'],
    async check(world) {
      const counted = rule({ limit: 10 });
      const other = await world.another();
      const readings = await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          world.decide(counted, ONE, ALICE, i % 2 === 0 ? world.store : other),
        ),
      );
      assert.equal(readings.filter(reading => reading.allowed).length, 10);
    },
  },
  {
    promise: 'limiters with the same scope and subject share a counter, others never',
    async check(world) {
      await world.consume(rule({ scope: 'login.ip', limit: 3 }), 2);
      expectReading(await world.peek(rule({ scope: 'login.ip', limit: 3 })), { remaining: 1 });
      expectReading(await world.peek(rule({ scope: 'login.ip', limit: 5 })), { limit: 5, remaining: 3 });
      for (const scope of [
        'login',
        'login.i',
        'login.ip2',
        'LOGIN.IP',
        'login:ip',
        'login.ip:fixed-window',
      ]) {
        expectReading(await world.peek(rule({ scope })), { remaining: 3 }, `scope ${scope}:`);
      }
      expectReading(await world.peek(rule({ scope: 'login.ip' }), 1, BOB), { remaining: 3 });
    },
  },
  {
    promise: 'another window or algorithm counts apart, and the first goes on counting',
    async check(world) {
      const free = rule({ limit: 3, windowSec: 3600 });
      const pro = rule({ limit: 10, windowSec: 7200 });
      const log = rule({ limit: 3, windowSec: 3600, algorithm: 'sliding-log' });
      await world.consume(free, 2);
      expectReading(await world.consume(pro), { remaining: 9 });
      expectReading(await world.consume(log), { remaining: 2 });
      expectReading(await world.peek(free), { remaining: 1 });
    },
  },
  {
    promise: 'a block survives a change of window and algorithm',
    async check(world) {
      const free = rule({ limit: 1, blockSec: 60 });
      await world.consume(free);
      await world.consume(free);
      const pro = rule({ limit: 100, windowSec: 7200, algorithm: 'token-bucket' });
      expectReading(await world.consume(pro), { allowed: false, reason: 'blocked' });
    },
  },
];
