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

type Kind = 'single' | 'cluster' | 'sentinel' | 'upstash';

/** Starts servers of these kinds; those of others are not there to be asked for. */
export async function startServers(
  kinds: readonly Kind[] = ['single', 'cluster', 'sentinel', 'upstash'],
): Promise<Servers> {
  const started = async <T>(start: () => Promise<T>, ...needs: Kind[]): Promise<T | undefined> =>
    needs.some(kind => kinds.includes(kind)) ? start() : undefined;
  const [single, cluster, sentinel] = await Promise.all([
    started(startRedis, 'single', 'upstash'),
    started(startCluster, 'cluster'),
    started(startSentinel, 'sentinel'),
  ]);
  const upstash = single && (await started(() => upstashEndpoint(single.port), 'upstash'));
  const there = <T>(server: T | undefined): T => {
    if (server === undefined)
      throw new Error(`Only servers of these kinds were started: ${kinds.join(', ')}.`);
    return server;
  };
  return {
    get single() {
      return there(single);
    },
    get cluster() {
      return there(cluster);
    },
    get sentinel() {
      return there(sentinel);
    },
    get upstash() {
      return there(upstash);
    },
    stop: async () => {
      await upstash?.close();
      await Promise.all([single?.stop(), cluster?.stop(), sentinel?.stop()]);
    },
  };
}

/** One way to reach Redis: a client in front of a kind of server. */
export interface Target {
  readonly name: string;
  readonly kind: Kind;
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
