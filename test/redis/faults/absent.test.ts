import { RedisStore } from '../../../src/stores/redis/index.js';
import { CLIENTS, type OpenClient } from '../../support/redis/clients.js';
import {
  expectHealthy,
  expectNoneDegraded,
  expectPromisesKept,
  figures,
  limitersOver,
  load,
  PATIENT_MS,
  recovered,
  report,
  type Subjected,
} from '../../support/redis/load.js';
import { freePort } from '../../support/redis/processes.js';
import { startProxy } from '../../support/redis/proxy.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { onEnd, server } = stage();

function limiters(opened: OpenClient, deadlineMs?: number): Subjected {
  onEnd(opened.close);
  return limitersOver(new RedisStore({ client: opened.client }), deadlineMs);
}

describe.each(CLIENTS)('$name', kind => {
  it.each([
    ['connecting by itself', false],
    ['left to connect lazily', true],
  ])('a Redis absent at the start is missed, and found when it comes (client %s)', async (_, lazy) => {
    const port = await freePort();
    const subjected = limiters(kind.single({ port }, lazy));
    const outcomes = await load(subjected);
    await server({ port });
    const ms = await recovered(subjected);
    report(`absent at the start, ${kind.name}${lazy ? ', lazy' : ''}`, outcomes, {
      'recovered after ms': ms.toFixed(0),
    });
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBe(outcomes.length);
    await expectHealthy(subjected, 'after');
  });

  it('a client that nobody connected is connected by the first decision', async () => {
    const { port } = await server();
    const subjected = limiters(kind.single({ port }, true), PATIENT_MS);
    const outcomes = await load(subjected, {
      requests: 510,
      perSecond: 800,
      subject: i => `number ${String(i)}`,
    });
    report(`lazyConnect, ${kind.name}`, outcomes);
    expectPromisesKept(outcomes);
    expectNoneDegraded(subjected, outcomes);
    await expectHealthy(subjected, 'after');
  });

  it('a wrong password fails every call in time, and is forgotten when it becomes right', async () => {
    const redis = await server({ password: 'right' });
    const subjected = limiters(kind.single({ port: redis.port, password: 'wrong' }));
    const outcomes = await load(subjected);
    await redis.call('CONFIG', 'SET', 'requirepass', 'wrong');
    const ms = await recovered(subjected);
    report(`wrong password, ${kind.name}`, outcomes, { 'recovered after ms': ms.toFixed(0) });
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBe(outcomes.length);
    await expectHealthy(subjected, 'after');
  });

  it('a server without a free connection is missed, and found when one is free', async () => {
    const redis = await server();
    const proxy = await startProxy(redis.port);
    onEnd(() => proxy.close());
    const opened = kind.single({ port: proxy.port });
    const subjected = limiters(opened);
    await opened.ready;
    await expectHealthy(subjected, 'before');
    // The tests' own connection has the only place; the client loses its own and finds none when it comes back.
    await redis.call('CONFIG', 'SET', 'maxclients', 1);
    proxy.cut();
    const outcomes = await load(subjected);
    await redis.call('CONFIG', 'SET', 'maxclients', 100);
    const ms = await recovered(subjected);
    report(`connection limit reached, ${kind.name}`, outcomes, { 'recovered after ms': ms.toFixed(0) });
    expectPromisesKept(outcomes);
    expect(figures(outcomes).degraded).toBe(outcomes.length);
    await expectHealthy(subjected, 'after');
  });
});
