import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import type { Redis } from 'ioredis';
import { createLimiter } from '../../../src/index.js';
import { type ClientKind, clientKind, CLIENTS } from '../../support/redis/clients.js';
import type { RedisServer } from '../../support/redis/server.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { onEnd, server, storeOver } = stage();

/** An address that leads to whichever server is the master, as managed services have it. Open connections stay as they are. */
async function stableAddress(
  first: number,
): Promise<{ server: Server; port: number; lead: (to: number) => void }> {
  let target = first;
  const server = createServer(caller => {
    const socket = connect(target, '127.0.0.1');
    caller.pipe(socket).pipe(caller);
    for (const end of [caller, socket]) {
      end
        .on('error', () => {})
        .on('close', () => {
          caller.destroy();
          socket.destroy();
        });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port, lead: to => (target = to) };
}

/** @param told what the old server does once it has answered READONLY */
async function expectLeft(kind: ClientKind, told: (old: RedisServer) => unknown): Promise<void> {
  const [old, next] = await Promise.all([server(), server()]);
  const address = await stableAddress(old.port);
  onEnd(() => address.server.close());
  const store = await storeOver(kind.single({ port: address.port }));
  const [open, closed] = (['open', 'closed'] as const).map(failMode =>
    createLimiter({ scope: failMode, limit: 5, windowSec: 60, store, failMode, storeTimeoutMs: 2_000 }),
  );
  const errors: string[] = [];
  closed!.on('store-error', ({ error }) => errors.push(error.message));
  expect((await closed!.consume('alice')).allowed).toBe(true);

  await old.call('REPLICAOF', '127.0.0.1', String(next.port));
  address.lead(next.port);
  const [passed, refused] = await Promise.all([open!.consume('bob'), closed!.consume('alice')]);
  expect(passed).toMatchObject({ allowed: true, degraded: 'open' });
  expect(refused).toMatchObject({ allowed: false, reason: 'unavailable' });
  expect(errors[0]).toContain('READONLY');
  await told(old);
  const since = performance.now();
  while (!(await closed!.consume('alice')).allowed) {
    expect(performance.now() - since).toBeLessThan(10_000);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
  // The new master counts.
  expect(await next.call('DBSIZE')).toBe(1);
}

it.each(CLIENTS.filter(({ name }) => name.startsWith('ioredis')))(
  'P76: $name leaves a server that has become a replica and kept its connections',
  kind => expectLeft(kind, () => {}),
);

// It has no public way to reconnect; see docs/redis.md.
it('P76: node-redis 6 leaves a server that has become a replica once that drops its connections', () =>
  expectLeft(clientKind('node-redis 6'), old => old.call('CLIENT', 'KILL', 'TYPE', 'normal')));

it.each(CLIENTS.filter(({ name }) => name.startsWith('ioredis')))(
  "R5: $name on a server that stays a replica: the application's own reads never fail",
  async kind => {
    const [replica, master] = await Promise.all([server(), server()]);
    const opened = kind.single({ port: replica.port }, false, { enableOfflineQueue: false });
    const client = opened.client as Redis;
    const store = await storeOver(opened);
    const limiter = createLimiter({ scope: 'a', limit: 5, windowSec: 60, store });
    expect((await limiter.consume('alice')).degraded).toBeUndefined();
    await replica.call('REPLICAOF', '127.0.0.1', String(master.port));
    const failed: string[] = [];
    let [reads, degraded] = [0, 0];
    const since = performance.now();
    while (performance.now() - since < 5_000) {
      reads += 1;
      await client.get('foo').catch((error: unknown) => failed.push(String(error)));
      if ((await limiter.consume('alice')).degraded !== undefined) degraded += 1;
      await new Promise(resolve => setTimeout(resolve, 5));
    }
    expect(reads).toBeGreaterThan(200);
    expect(degraded).toBe(reads);
    expect(failed).toEqual([]);
    // It is the master again: without a new connection, too.
    await replica.call('REPLICAOF', 'NO', 'ONE');
    await new Promise(resolve => setTimeout(resolve, 1_200));
    expect((await limiter.consume('alice')).degraded).toBeUndefined();
  },
);

it('R5: a master that the address leads to only later is found, and the probes end with the store', async () => {
  const kind = clientKind('ioredis 5');
  const [old, next] = await Promise.all([server(), server()]);
  const address = await stableAddress(old.port);
  onEnd(() => address.server.close());
  const store = await storeOver(kind.single({ port: address.port }));
  const limiter = createLimiter({ scope: 'a', limit: 5, windowSec: 60, store });
  expect((await limiter.consume('alice')).degraded).toBeUndefined();
  await old.call('REPLICAOF', '127.0.0.1', String(next.port));
  const since = performance.now();
  let isLed = false;
  while ((await limiter.consume('alice')).degraded !== undefined) {
    if (!isLed && performance.now() - since > 2_500) address.lead(next.port);
    isLed ||= performance.now() - since > 2_500;
    expect(performance.now() - since).toBeLessThan(15_000);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
  expect(isLed).toBe(true);
  expect(await next.call('DBSIZE')).toBe(1);
  await store.close();
  const [, connections = ''] =
    /connected_clients:(\d+)/.exec(String(await next.call('INFO', 'clients'))) ?? [];
  // The client's, and the test's own.
  expect(connections).toBe('2');
});
