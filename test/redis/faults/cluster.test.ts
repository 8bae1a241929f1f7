import { setTimeout as wait } from 'node:timers/promises';
import { CLIENTS, type ClientKind } from '../../support/redis/clients.js';
import { type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import {
  expectHealthy,
  expectLimitHeld,
  expectNoneDegraded,
  expectPromisesKept,
  figures,
  LIMIT,
  limitersOver,
  load,
  PATIENT_MS,
  recovered,
  report,
  type Subjected,
} from '../../support/redis/load.js';
import { until } from '../../support/redis/server.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { storeOver } = stage();

describe.each(CLIENTS)('$name', kind => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  async function scene(of: ClientKind, deadlineMs?: number): Promise<Subjected> {
    const prefix = `p${String(Math.random()).slice(2)}`;
    return limitersOver(await storeOver(of.cluster(cluster), { prefix }), deadlineMs);
  }

  async function slotOfHot(subjected: Subjected): Promise<number> {
    const before = new Set(await cluster.keys());
    await subjected.limiters.open.peek('hot');
    await subjected.limiters.open.consume('hot', { cost: 1 });
    const [key] = (await cluster.keys()).filter(one => !before.has(one));
    return cluster.slotOf(key!);
  }

  it('P74: every master decides about its subjects, and no MOVED reaches anybody', async () => {
    const subjected = await scene(kind, PATIENT_MS);
    const others = new Set(await cluster.keys());
    const slot = await slotOfHot(subjected);
    await subjected.limiters.open.reset('hot');
    const spread = await load(subjected, { perSecond: 2_000, subject: i => `number ${String(i % 50)}` });
    expectNoneDegraded(subjected, spread);
    const masters = cluster.nodes.slice(0, 3);
    for (const master of masters) {
      const keys = (await master.call('KEYS', '*')) as string[];
      expect(keys.filter(key => !others.has(key)).length).toBeGreaterThan(0);
    }
    // Nobody tells the client: it asks the old master next.
    const owner = await cluster.slotOwner(slot);
    await cluster.moveSlot(
      slot,
      masters.find(({ id }) => id !== owner.id)!,
    );
    const hot = await load(subjected, {
      requests: 3 * (LIMIT + 10),
      perSecond: 2_000,
      subject: () => 'hot',
    });
    expectNoneDegraded(subjected, hot);
    expectLimitHeld(hot, true);
  });

  it('a slot that moves under load neither loses a count nor counts twice', async () => {
    const subjected = await scene(kind, PATIENT_MS);
    const slot = await slotOfHot(subjected);
    await subjected.limiters.open.reset('hot');
    const running = load(subjected, {
      requests: 1_080,
      perSecond: 360,
      subject: i => (i % 4 < 3 ? 'hot' : `number ${String(i % 50)}`),
    });
    let moves = 0;
    const loading = new AbortController();
    const moving = (async () => {
      for (; !loading.signal.aborted; moves++) {
        const owner = await cluster.slotOwner(slot);
        const next = cluster.nodes.slice(0, 3).find(({ id }) => id !== owner.id)!;
        await cluster.moveSlot(slot, next, { pauseMs: 150 });
        await wait(150);
      }
    })();
    const outcomes = await running;
    loading.abort();
    await moving;
    report(`a slot moved under load, ${kind.name}`, outcomes, { moves });
    expectPromisesKept(outcomes);
    expect(moves).toBeGreaterThan(3);
    expectNoneDegraded(subjected, outcomes);
    expectLimitHeld(
      outcomes.filter(({ subject }) => subject === 'hot'),
      true,
    );
  });

  it('a master that dies is replaced by its replica without a restart', async () => {
    const subjected = await scene(kind);
    const slot = await slotOfHot(subjected);
    await expectHealthy(subjected, 'before');
    const running = load(subjected, {
      requests: 1_400,
      perSecond: 360,
      subject: i => (i % 2 === 0 ? 'hot' : `number ${String(i % 50)}`),
    });
    await wait(300);
    const master = await cluster.slotOwner(slot);
    await master.kill();
    const outcomes = await running;
    // Until then two thirds of the subjects have a master, and a third has none.
    await until('the replica has taken over', async () => (await cluster.slotOwner(slot)).id !== master.id);
    await until('the others call the cluster ok', () => cluster.isOk());
    // A client may learn later than the cluster itself who answers for the slots of the dead master.
    await until(
      'the client knows the new master',
      async () => (await subjected.limiters.open.consume('hot')).degraded === undefined,
      15_000,
    );
    const ms = await recovered(subjected);
    report(`a cluster's master killed, ${kind.name}`, outcomes, { 'recovered after ms': ms.toFixed(0) });
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBeGreaterThan(0);
    await expectHealthy(subjected, 'after');
  });
});
