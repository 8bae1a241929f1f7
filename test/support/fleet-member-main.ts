// A process of a fleet, started by a test with tsx: an application with one limiter and the operators' routes, on a Redis
// that others share. Says its port when it listens.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { Redis } from 'ioredis';
import { adminRouter } from '../../src/admin/index.js';
import { rateLimit } from '../../src/index.js';
import { RedisStore } from '../../src/stores/redis/index.js';

const [redisPort = '', denyCacheMs = '', adminKey = ''] = process.argv.slice(2);

const client = new Redis({ host: '127.0.0.1', port: Number(redisPort) });
client.on('error', () => undefined);
const store = new RedisStore({ client, denyCacheMs: Number(denyCacheMs) });
const login = rateLimit({
  scope: 'login.pair',
  limit: 2,
  windowSec: 900,
  blockSec: 900,
  keyFn: req => [String(req.headers['x-email']), String(req.headers['x-client'])],
  store,
  storeTimeoutMs: 5000,
});

const app = express();
app.use('/admin', adminRouter({ limiters: [login], adminKey }));
app.get('/login', login, (_req, res) => {
  res.send('in');
});
const server = createServer(app).listen(0, '127.0.0.1', () => {
  process.send?.((server.address() as AddressInfo).port);
});
process.on('disconnect', () => process.exit());
