// The build that is measured: that of this checkout, or another one whose `dist` is named in LIMITKEEPER_DIST. By path, for
// a `file:..` in package.json would put this machine's links into the lockfile.
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));

export const dist = path.resolve(process.env.LIMITKEEPER_DIST ?? path.join(here, '../dist'));

const load = file => import(pathToFileURL(path.join(dist, file)).href);

export const { byStatus, createLimiter, getRateLimit, MemoryStore, rateLimit } = await load('index.js');

export const loadRedisStore = async () => (await load('stores/redis/index.js')).RedisStore;
