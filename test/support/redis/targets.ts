import { Redis as UpstashRedis } from '@upstash/redis';
import { CLIENTS } from './clients.js';
import type { OpenClient } from './clients.js';
import { startCluster } from './cluster.js';
import type { RedisCluster } from './cluster.js';
import { startSentinel } from './sentinel.js';
import type { RedisSentinel } from './sentinel.js';
import { startRedis } from './server.js';
import type { RedisServer } from './server.js';
import { upstashEndpoint } from './upstash.js';
import type { UpstashEndpoint } from './upstash.js';

/** All kinds of server that a store may stand before. */
export interface Servers {
  readonly single: RedisServer;
  readonly cluster: RedisCluster;
  readonly sentinel: RedisSentinel;
  readonly upstash: UpstashEndpoint;
  stop(): Promise<void>;
}

export async function startServers(): Promise<Servers> {
  const [single, cluster, sentinel] = await Promise.all([startRedis(), startCluster(), startSentinel()]);
  const upstash = await upstashEndpoint(single.port);
  return {
    single,
    cluster,
    sentinel,
    upstash,
    stop: async () => {
      await upstash.close();
      await Promise.all([single.stop(), cluster.stop(), sentinel.stop()]);
    },
  };
}

/** One way to reach Redis: a client in front of a kind of server. */
export interface Target {
  readonly name: string;
  readonly kind: 'single' | 'cluster' | 'sentinel' | 'upstash';
  open(servers: Servers): Promise<OpenClient>;
}

const whenReady = async (opened: OpenClient): Promise<OpenClient> => {
  await opened.ready;
  return opened;
};

/** Every supported client with every kind of server that it can speak to. */
export const TARGETS: readonly Target[] = [
  ...CLIENTS.flatMap((kind): Target[] => [
    {
      name: `${kind.name}, one server`,
      kind: 'single',
      open: ({ single }) => whenReady(kind.single({ port: single.port })),
    },
    {
      name: `${kind.name}, cluster`,
      kind: 'cluster',
      open: ({ cluster }) => whenReady(kind.cluster(cluster)),
    },
    {
      name: `${kind.name}, sentinel`,
      kind: 'sentinel',
      open: ({ sentinel }) => whenReady(kind.sentinel(sentinel)),
    },
  ]),
  {
    name: '@upstash/redis',
    kind: 'upstash',
    open: async ({ upstash: { url, token } }) => ({
      client: new UpstashRedis({ url, token, enableTelemetry: false }),
      ready: Promise.resolve(),
      close: () => undefined,
    }),
  },
];
