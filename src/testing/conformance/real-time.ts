import { strict as assert } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Reading } from '../../core/decision.js';
import { expectReading, rule } from './world.js';
import type { Clause } from './world.js';

/** Timers and servers round: this much later than told, at most, is asked for. */
const GRACE_MS = 20;

/**
 * For stores whose time is their own: short windows, really waited for. A busy machine may take long between two calls, so
 * only what is still certain then is asserted.
 */
export const realTimeClauses: readonly Clause[] = [
  ...(['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket', 'leaky-bucket'] as const).map(
    (algorithm): Clause => ({
      promise: `${algorithm}: waiting as told passes`,
      needs: ['realTime'],
      async check(world) {
        const counted = rule({ algorithm, limit: 1, windowSec: 1 });
        expectReading(await world.consume(counted), { allowed: true });
        await waitAsTold(await world.consume(counted), 2000);
        expectReading(await world.consume(counted), { allowed: true });
      },
    }),
  ),
  {
    promise: 'a block ends by itself',
    needs: ['realTime'],
    async check(world) {
      expectReading(await world.block(rule(), 800), { reason: 'blocked' });
      await waitAsTold(await world.peek(rule()), 800);
      expectReading(await world.consume(rule()), { allowed: true });
    },
  },
  {
    promise: 'a hold lapses by itself',
    needs: ['realTime'],
    async check(world) {
      const counted = rule({ limit: 1, holdSec: 0.5 });
      await world.reserve(counted);
      await waitAsTold(await world.peek(counted), 1000);
      expectReading(await world.consume(counted), { allowed: true });
    },
  },
  {
    promise: 'the time goes on, in whole milliseconds near those of this machine',
    needs: ['realTime'],
    async check(world) {
      const first = await world.now();
      await sleep(50);
      const second = await world.now();
      assert.ok(
        Number.isSafeInteger(first) && second - first >= 40,
        `${String(first)}, then ${String(second)}`,
      );
    },
  },
];

async function waitAsTold({ allowed, retryAfterMs }: Reading, mostMs: number): Promise<void> {
  // Already over on a slow machine: then there is nothing to wait for.
  if (allowed) return;
  assert.ok(
    retryAfterMs !== null && retryAfterMs > 0 && retryAfterMs <= mostMs,
    `told to wait ${String(retryAfterMs)} ms`,
  );
  await sleep(retryAfterMs + GRACE_MS);
}
