import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createLimiter } from '../../../src/index.js';
import { CLIENTS } from '../../support/redis/clients.js';
import { makeFolder, removeFolder } from '../../support/redis/processes.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { onEnd, server, storeOver } = stage();

/** The options of a client that reaches the server by its socket in the file system. */
const byPath = (name: string, path: string): object =>
  name.startsWith('ioredis') ? { path } : { socket: { path } };

it.each(CLIENTS)('R2: $name over a unix socket: what runs late counts nothing', async kind => {
  const folder = await makeFolder('limitkeeper-unix-');
  onEnd(() => removeFolder(folder));
  const path = join(folder, 'redis.sock');
  const redis = await server({ args: ['--unixsocket', path] });
  onEnd(() => {
    redis.thaw();
  });
  const store = await storeOver(kind.single({ port: redis.port }, false, byPath(kind.name, path)));
  const limiter = createLimiter({
    scope: 'a',
    limit: 1_000,
    windowSec: 600,
    algorithm: 'fixed-window',
    store,
  });
  for (let i = 0; i < 5; i++) expect((await limiter.consume('alice')).degraded).toBeUndefined();
  // It came by the socket: nobody else uses TCP but the test itself.
  expect(await redis.call('CLIENT', 'LIST')).toContain(`addr=${path}:0`);
  redis.freeze();
  const late = await Promise.all(
    Array.from({ length: 4 }, async (_, i) => {
      await wait(i * 20);
      return limiter.consume('alice', { cost: 10 });
    }),
  );
  expect(late.map(({ degraded }) => degraded)).toEqual(['open', 'open', 'open', 'open']);
  await wait(2_600);
  redis.thaw();
  await wait(1_500);
  expect((await limiter.peek('alice')).remaining).toBe(995);
});
