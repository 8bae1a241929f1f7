// One of several processes of an application, all behind the same Redis: one count for all of them.
//   PORT=3001 npx --yes tsx node_modules/limitkeeper/examples/redis/app.ts
// (in a checkout: PORT=3001 npm run example examples/redis/app.ts). REDIS_URL names another Redis than that of this machine.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { Redis } from 'ioredis';
import { rateLimit } from 'limitkeeper';
import { RedisStore } from 'limitkeeper/redis';

const client = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379');
// Whoever makes a client listens for its errors; what they mean for requests is the limiter's business.
client.on('error', (error: Error) => {
  console.error(`redis: ${error.message}`);
});

const limit = rateLimit({
  scope: 'api.ip',
  limit: 10,
  windowSec: 60,
  store: new RedisStore({ client }),
  // While Redis is away every process counts for itself, instead of letting everybody pass.
  failMode: 'local',
});
limit.limiter.on('degraded', ({ error }) => {
  console.error(`limits are counted per process for now: ${error.message}`);
});

const app = express();
app.disable('x-powered-by');
app.use(limit);
app.get('/', (_req, res) => {
  res.json({ process: process.pid });
});

const server = createServer(app);
server.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  console.log(`http://127.0.0.1:${String(port)}/`);
  process.send?.(port);
});

/** In this order: no new requests, what is still being counted, and only then the connection that it needs. */
async function shutDown(): Promise<void> {
  await new Promise(resolve => server.close(resolve));
  await limit.limiter.close();
  await client.quit().catch(() => undefined);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    shutDown().then(
      () => process.exit(),
      () => process.exit(1),
    );
  });
}
