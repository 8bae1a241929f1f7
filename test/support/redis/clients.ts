import * as five from 'ioredis';
import * as six from 'ioredis6';
import { createClient, createCluster, createSentinel } from 'redis';
import type { RedisStoreOptions } from '../../../src/stores/redis/index.js';

type Client = RedisStoreOptions['client'];

/** A client as an application would have made it. */
export interface OpenClient {
  readonly client: Client;
  /** Resolves once the client says that it is ready. Never, where there is no server: then nobody waits for it. */
  readonly ready: Promise<void>;
  /** Cuts its connections. Clients wait for no server here: it may be dead. */
  close(): void;
}

export interface SingleAddress {
  readonly port: number;
  readonly password?: string;
}

export interface ClusterAddress {
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
}

export interface SentinelAddress {
  readonly host: string;
  readonly port: number;
  /** The master's name. */
  readonly name: string;
}

export interface ClientKind {
  readonly name: string;
  /**
   * @param lazy the application leaves it to others to connect (`lazyConnect` of ioredis; no `connect()` of node-redis)
   * @param options of the client, in its own words
   */
  single(at: SingleAddress, lazy?: boolean, options?: object): OpenClient;
  cluster(at: ClusterAddress): OpenClient;
  sentinel(at: SentinelAddress): OpenClient;
}

// Applications listen for errors; without a listener ioredis prints them, and node-redis throws.
const heard = (): void => undefined;

interface IoredisModule {
  readonly Redis: new (options: object) => five.Redis;
  readonly Cluster: new (nodes: object[]) => five.Cluster;
}

function ioredis(name: string, { Redis, Cluster }: IoredisModule): ClientKind {
  const opened = (client: five.Redis | five.Cluster): OpenClient => {
    client.on('error', heard);
    return {
      client,
      ready: new Promise(resolve => {
        client.once('ready', resolve);
      }),
      close: () => {
        client.disconnect();
      },
    };
  };
  return {
    name,
    single: (at, lazy = false, options = {}) =>
      opened(new Redis({ host: '127.0.0.1', ...at, lazyConnect: lazy, ...options })),
    cluster: ({ addresses }) => opened(new Cluster([...addresses])),
    sentinel: ({ host, port, name: master }) =>
      opened(new Redis({ sentinels: [{ host, port }], name: master })),
  };
}

interface NodeRedisClient {
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: () => void): unknown;
}

function nodeRedis(): ClientKind {
  const opened = (client: unknown, lazy = false): OpenClient => {
    const own = client as NodeRedisClient;
    own.on('error', heard);
    const ready = lazy ? new Promise<never>(heard) : own.connect().then(heard);
    // It rejects when the client is closed while it still connects.
    ready.catch(heard);
    return {
      client: client as Client,
      ready,
      close: () => {
        try {
          void Promise.resolve(own.destroy()).catch(heard);
        } catch {
          // Never opened, or closed already.
        }
      },
    };
  };
  return {
    name: 'node-redis 6',
    single: ({ port, password }, lazy, options = {}) =>
      opened(
        createClient({
          socket: { host: '127.0.0.1', port },
          ...(password === undefined ? {} : { password }),
          ...options,
        }),
        lazy,
      ),
    cluster: ({ addresses }) =>
      opened(createCluster({ rootNodes: addresses.map(socket => ({ socket: { ...socket } })) })),
    sentinel: ({ host, port, name }) => opened(createSentinel({ name, sentinelRootNodes: [{ host, port }] })),
  };
}

/** Every client that keeps a connection, as the applications of today have them. */
export const CLIENTS: readonly ClientKind[] = [
  ioredis('ioredis 5', five),
  ioredis('ioredis 6', six as unknown as IoredisModule),
  nodeRedis(),
];

export function clientKind(name: string): ClientKind {
  const kind = CLIENTS.find(one => one.name === name);
  if (kind === undefined) throw new Error(`There is no client ${name}.`);
  return kind;
}
