import { receivedSecret, typeError } from '../../../core/errors.js';
import type { LimitkeeperError } from '../../../core/errors.js';
import type { RedisPort } from '../port.js';
import { commandClassOf } from './ioredis-client.js';
import type { IoredisClient } from './ioredis-client.js';
import { IoredisClusterPort } from './ioredis-cluster.js';
import type { IoredisCluster } from './ioredis-cluster.js';
import { IoredisPort } from './ioredis.js';
import { NodeRedisClientPort, NodeRedisClusterPort, NodeRedisSentinelPort } from './node-redis.js';
import type { NodeRedisClient, NodeRedisCluster, NodeRedisSentinel } from './node-redis.js';
import { UpstashPort } from './upstash.js';
import type { UpstashClient } from './upstash.js';

const EXPECTED =
  'client must be a client of ioredis (5 or 6; Redis or Cluster), of node-redis (5 or later; createClient, createCluster or ' +
  'createSentinel) or of @upstash/redis';

/**
 * The port for a client, told by its shape: an application may have several copies of a client package, and `instanceof`
 * fails across them.
 *
 * @throws TypeError `ERR_LIMITKEEPER_OPTION_TYPE` for anything else, and for a client that its user has closed.
 */
export function portFor(client: unknown): RedisPort {
  if (typeof client !== 'object' || client === null)
    throw wrong(`${EXPECTED}, got ${receivedSecret(client)}.`);
  refuseClosed(client);
  if (has(client, 'sendCommand', 'function') && has(client, 'status', 'string')) return ioredisPort(client);
  if (has(client, 'isOpen', 'boolean') && has(client, 'isReady', 'boolean')) return nodeRedisPort(client);
  if (isUpstash(client)) return new UpstashPort(client);
  if (has(client, 'sendCommand', 'function') || has(client, 'send_command', 'function')) {
    throw wrong(`${EXPECTED}, got something that looks like an older client. Update the package.`);
  }
  throw wrong(`${EXPECTED}, got an object that is none of these. Pass the client itself, not its options.`);
}

/** Is this a client, old or new, and no plain object with options, which may have functions of the same names? */
export function isClient(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (isUpstash(value)) return true;
  return ['sendCommand', 'send_command'].some(
    name => has(value, name, 'function') && !Object.hasOwn(value, name),
  );
}

/** @throws TypeError `ERR_LIMITKEEPER_OPTION_TYPE` for a client that its user has closed. One not yet started is sound. */
export function refuseClosed(client: object): void {
  const { status, isOpen, socketEpoch } = client as Partial<IoredisClient & NodeRedisClient>;
  if (status === 'end') throw closed('new Redis(…)');
  if (isOpen === false && (socketEpoch ?? 0) > 0) throw closed('createClient(…)');
}

function ioredisPort(client: object): RedisPort {
  const ioredis = client as IoredisClient;
  const Command = commandClassOf(ioredis);
  if (Command === undefined) throw wrong(`${EXPECTED}, got an ioredis client of an unknown version.`);
  if (ioredis.options.monitor === true)
    throw wrong(`${EXPECTED}, got one that monitors (what monitor() answers). Pass the client itself.`);
  if (ioredis.isCluster) return new IoredisClusterPort(ioredis as IoredisCluster, Command);
  return new IoredisPort(ioredis, Command);
}

function nodeRedisPort(client: object): RedisPort {
  if (has(client, 'nodeClient', 'function')) return new NodeRedisClusterPort(client as NodeRedisCluster);
  if (has(client, '_execute', 'function') && has(client, 'acquire', 'function')) {
    return new NodeRedisSentinelPort(client as NodeRedisSentinel);
  }
  if (!has(client, 'sendCommand', 'function') || !has(client, 'connect', 'function')) {
    throw wrong(`${EXPECTED}, got a node-redis object without sendCommand (a pool, perhaps).`);
  }
  return new NodeRedisClientPort(client as NodeRedisClient);
}

function isUpstash(client: object): client is UpstashClient {
  const http: unknown = (client as { client?: unknown }).client;
  return (
    typeof http === 'object' &&
    http !== null &&
    has(http, 'request', 'function') &&
    has(http, 'baseUrl', 'string')
  );
}

const has = (value: object, name: string, type: 'function' | 'string' | 'boolean'): boolean =>
  typeof (value as Record<string, unknown>)[name] === type;

const wrong = (message: string): TypeError & LimitkeeperError =>
  typeError('ERR_LIMITKEEPER_OPTION_TYPE', message, { option: 'client' });

const closed = (make: string): TypeError & LimitkeeperError =>
  wrong(
    `${EXPECTED}, got one that has been closed. Make a new one (${make}), and close it only after limiter.close().`,
  );
