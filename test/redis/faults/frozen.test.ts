import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { CLIENTS, type ClientKind } from '../../support/redis/clients.js';
import {
  BOUND_MS,
  DEADLINE_MS,
  expectHealthy,
  expectLimitHeld,
  expectNoneDegraded,
  expectPromisesKept,
  figures,
  limitersOver,
  load,
  type Outcome,
  recovered,
  report,
  type Subjected,
} from '../../support/redis/load.js';
import { type Proxy, startProxy } from '../../support/redis/proxy.js';
import type { RedisServer } from '../../support/redis/server.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { onEnd, server, storeOver } = stage();

const PER_SECOND = 360;
/** A command may still count so long after its deadline, for clocks are read at both ends of a network. */
const TOLERANCE_MS = 1_000;

async function scene(
  kind: ClientKind,
  deadlineMs?: number,
): Promise<{ redis: RedisServer; proxy: Proxy; subjected: Subjected }> {
  const redis = await server();
  const proxy = await startProxy(redis.port);
  onEnd(() => proxy.close());
  const store = await storeOver(kind.single({ port: proxy.port }));
  return { redis, proxy, subjected: limitersOver(store, deadlineMs) };
}

/** A store that does not answer costs a deadline now and then, not one per request. */
function expectFewWaited(outcomes: readonly Outcome[]): number {
  const waited = outcomes.filter(({ ms }) => ms >= 0.8 * DEADLINE_MS).length;
  // Those that began before the first of them was found late: a deadline's worth, four times as many allowed.
  expect(waited).toBeLessThan((PER_SECOND * DEADLINE_MS * 4) / 1_000);
  return waited;
}

describe.each(CLIENTS)('$name', kind => {
  it('a frozen Redis that thaws counts nothing that is late', async () => {
    const { redis, subjected } = await scene(kind);
    onEnd(() => {
      redis.thaw();
    });
    await expectHealthy(subjected, 'before');
    const running = load(subjected, {
      requests: 1_500,
      perSecond: PER_SECOND,
      subject: i => `number ${String(i)}`,
    });
    await wait(300);
    const frozenAt = performance.now();
    redis.freeze();
    await wait(3_000);
    const thawedAt = performance.now();
    redis.thaw();
    const outcomes = await running;
    const ms = await recovered(subjected);

    const frozen = outcomes.filter(({ startedAt }) => startedAt > frozenAt && startedAt < thawedAt);
    const late = frozen.filter(
      ({ startedAt, decision }) =>
        decision.degraded !== undefined && startedAt + DEADLINE_MS + TOLERANCE_MS + 100 < thawedAt,
    );
    const counted = async (list: readonly Outcome[]): Promise<readonly string[]> => {
      const cells = await Promise.all(list.map(({ subject }) => subjected.limiters.open.inspect(subject)));
      return list.filter((_, i) => cells[i]!.length > 0).map(({ subject }) => subject);
    };
    const rest = frozen.filter(outcome => !late.includes(outcome) && outcome.decision.degraded !== undefined);
    report(`frozen and thawed, ${kind.name}`, outcomes, {
      late: late.length,
      'late and counted': (await counted(late)).length,
      'counted within the tolerance': (await counted(rest)).length,
      waited: expectFewWaited(frozen),
      'recovered after ms': ms.toFixed(0),
    });
    expectPromisesKept(outcomes);
    expect(late.length).toBeGreaterThan(200);
    expect(await counted(late)).toEqual([]);
    await expectHealthy(subjected, 'after');
  });

  it('replies slower than the deadline are not waited for', async () => {
    const { proxy, subjected } = await scene(kind);
    await expectHealthy(subjected, 'before');
    proxy.replyDelayMs = 2.5 * DEADLINE_MS;
    const outcomes = await load(subjected, { perSecond: PER_SECOND });
    proxy.replyDelayMs = 0;
    const ms = await recovered(subjected);
    report(`replies slower than the deadline, ${kind.name}`, outcomes, {
      waited: expectFewWaited(outcomes),
      'recovered after ms': ms.toFixed(0),
    });
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBe(outcomes.length);
    await expectHealthy(subjected, 'after');
  });

  it('an event loop that was blocked for a second takes no reply for late', async () => {
    // Half the block: without care every call under way would be late.
    const { subjected } = await scene(kind, 500);
    const running = load(subjected, { requests: 600, perSecond: PER_SECOND });
    await wait(400);
    const until = performance.now() + 1_000;
    while (performance.now() < until);
    const outcomes = await running;
    report(`event loop blocked for a second, ${kind.name}`, outcomes);
    expectNoneDegraded(subjected, outcomes);
    expect(figures(outcomes).max).toBeLessThan(1_000 + BOUND_MS);
    expectLimitHeld(outcomes, true);
  });
});
