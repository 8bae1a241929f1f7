import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { createLimiter } from '../../src/index.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { CLIENTS } from '../support/redis/clients.js';
import { startRedis } from '../support/redis/server.js';

jest.setTimeout(60_000);

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

// node-redis has no public way to reconnect; see docs/redis.md.
it.each(CLIENTS.filter(({ name }) => name.startsWith('ioredis')))(
  '$name leaves a server that has become a replica and kept its connections',
  async kind => {
    const [old, next] = await Promise.all([startRedis(), startRedis()]);
    const address = await stableAddress(old.port);
    const opened = kind.single({ port: address.port });
    await opened.ready;
    const store = new RedisStore({ client: opened.client });
    const limiter = createLimiter({
      scope: 'a',
      limit: 5,
      windowSec: 60,
      store,
      failMode: 'closed',
      storeTimeoutMs: 2_000,
    });
    const errors: string[] = [];
    limiter.on('store-error', ({ error }) => errors.push(error.message));
    expect((await limiter.consume('alice')).allowed).toBe(true);

    await old.call('REPLICAOF', '127.0.0.1', String(next.port));
    address.lead(next.port);
    expect((await limiter.consume('alice')).reason).toBe('unavailable');
    expect(errors[0]).toContain('READONLY');
    const since = performance.now();
    while (!(await limiter.consume('alice')).allowed) {
      expect(performance.now() - since).toBeLessThan(10_000);
      await new Promise(resolve => setTimeout(resolve, 50));
    }
    // The new master counts.
    expect(await next.call('DBSIZE')).toBe(1);

    await limiter.close();
    opened.close();
    address.server.close();
    await Promise.all([old.stop(), next.stop()]);
  },
);
