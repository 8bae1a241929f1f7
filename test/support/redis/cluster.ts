import type { Reply } from './connection.js';
import { type RedisServer, startRedis, until } from './server.js';

export interface ClusterNode extends RedisServer {
  /** Its name in the cluster. */
  readonly id: string;
}

/** A real Redis Cluster on 127.0.0.1. */
export interface RedisCluster {
  /** The masters first, each followed later by its replica: node i + masters replicates node i at the start. */
  readonly nodes: readonly ClusterNode[];
  /** For the `startNodes` of ioredis; node-redis takes `urls`. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  readonly urls: readonly { readonly url: string }[];
  /** The master that serves a slot now. */
  slotOwner(slot: number): Promise<ClusterNode>;
  /** The slot of a key, as the server computes it. */
  slotOf(key: string): Promise<number>;
  /**
   * Moves a slot with its keys to another master, step by step as `redis-cli --cluster reshard` does. `pauseMs` waits while
   * the slot is half moved, so that callers meet ASK as well as MOVED.
   */
  moveSlot(slot: number, to: ClusterNode, options?: { readonly pauseMs?: number }): Promise<void>;
  /** Makes the replica of a slot's master the master, both staying alive; resolves with the new one. */
  failover(slot: number): Promise<ClusterNode>;
  /** Do all nodes that run call the cluster ok? */
  isOk(): Promise<boolean>;
  /** All keys, on whichever master. */
  keys(): Promise<string[]>;
  stop(): Promise<void>;
}

const SLOTS = 16_384;

const ORDER_AGAIN_MS = 6000;

/** Starts masters with their replicas, joins them, and waits until all of them call the cluster ok. */
export async function startCluster(
  options: { readonly masters?: number; readonly replicas?: number } = {},
): Promise<RedisCluster> {
  const { masters = 3, replicas = 3 } = options;
  const nodes: ClusterNode[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map(node => node.stop()));
  };
  try {
    await Promise.all(
      Array.from({ length: masters + replicas }, async (_, index) => {
        nodes[index] = await startNode();
      }),
    );
    await join(nodes, masters);
  } catch (error) {
    await stop();
    throw error;
  }

  const slotOwner = async (slot: number): Promise<ClusterNode> => {
    const ranges = (await first(nodes).call('CLUSTER', 'SLOTS')) as [number, number, Reply[]][];
    const range = ranges.find(([from, to]) => from <= slot && slot <= to);
    const owner = nodes.find(node => node.id === range?.[2][2]);
    if (owner === undefined) throw new Error(`No node of the cluster serves slot ${String(slot)}.`);
    return owner;
  };

  return {
    nodes,
    addresses: nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
    urls: nodes.map(({ url }) => ({ url })),
    slotOwner,
    async slotOf(key) {
      return Number(await first(nodes).call('CLUSTER', 'KEYSLOT', key));
    },
    async moveSlot(slot, to, { pauseMs = 0 } = {}) {
      const from = await slotOwner(slot);
      if (from.id === to.id) return;
      await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
      await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
      await moveKeys(slot, from, to);
      if (pauseMs > 0) await new Promise(resolve => setTimeout(resolve, pauseMs));
      // Keys that came meanwhile were sent to the new owner (ASK); none is left behind.
      await moveKeys(slot, from, to);
      for (const node of [to, from]) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
      await until(`all nodes know the new owner of slot ${String(slot)}`, async () => {
        const views = await Promise.all(nodes.map(node => ownerSeenBy(node, slot)));
        return views.every(id => id === to.id);
      });
    },
    async failover(slot) {
      const master = await slotOwner(slot);
      const replica = await replicaOf(nodes, master);
      // Redis gives an ordered failover up after five seconds, e.g. when the masters were busy with a slot that has just moved.
      let orderedAt = -Infinity;
      await until('the replica has taken over', async () => {
        if ((await slotOwner(slot)).id === replica.id) return true;
        if (performance.now() - orderedAt > ORDER_AGAIN_MS) {
          orderedAt = performance.now();
          await replica.call('CLUSTER', 'FAILOVER');
        }
        return false;
      });
      return replica;
    },
    async isOk() {
      const states = await Promise.all(running(nodes).map(node => clusterInfo(node, 'cluster_state')));
      return states.every(state => state === 'ok');
    },
    async keys() {
      const lists = await Promise.all(
        running(nodes).map(async node => {
          const role = ((await node.call('ROLE')) as Reply[])[0];
          return role === 'master' ? ((await node.call('KEYS', '*')) as string[]) : [];
        }),
      );
      return lists.flat();
    },
    stop,
  };
}

async function startNode(): Promise<ClusterNode> {
  const server = await startRedis({
    args: [
      ...[
        '--cluster-enabled',
        'yes',
        '--cluster-node-timeout',
        '2000',
        '--cluster-config-file',
        'nodes.conf',
      ],
      // A replica is not listed before it has received something: the first ping of its master, by default after 10 s.
      ...['--repl-ping-replica-period', '1'],
    ],
  });
  const id = String(await server.call('CLUSTER', 'MYID'));
  // The getters of the server stay live: its pid changes with a restart.
  return Object.defineProperty(server, 'id', { value: id, enumerable: true }) as ClusterNode;
}

async function join(nodes: readonly ClusterNode[], masters: number): Promise<void> {
  await Promise.all(
    nodes.map(async (node, index) => {
      await node.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
      if (index >= masters) return;
      const from = Math.floor((index * SLOTS) / masters);
      const to = Math.floor(((index + 1) * SLOTS) / masters);
      await node.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: to - from }, (_, slot) => from + slot));
    }),
  );
  await Promise.all(nodes.slice(1).map(node => first(nodes).call('CLUSTER', 'MEET', '127.0.0.1', node.port)));
  await until('all nodes know each other', async () => {
    const counts = await Promise.all(nodes.map(node => clusterInfo(node, 'cluster_known_nodes')));
    return counts.every(count => Number(count) === nodes.length);
  });
  await Promise.all(
    nodes.slice(masters).map(async (replica, index) => {
      const master = nodes[index % masters]!;
      // The replica may have heard of its master's address before its role.
      await until('the replica is attached', () =>
        replica.call('CLUSTER', 'REPLICATE', master.id).then(
          () => true,
          () => false,
        ),
      );
    }),
  );
  await until('the cluster is ok everywhere and the replicas are in step', async () => {
    const states = await Promise.all(nodes.map(node => clusterInfo(node, 'cluster_state')));
    const links = await Promise.all(nodes.slice(masters).map(node => node.info('master_link_status')));
    const seen = (await first(nodes).call('CLUSTER', 'SLOTS')) as Reply[][];
    return (
      states.every(state => state === 'ok') &&
      links.every(link => link === 'up') &&
      seen.reduce((sum, range) => sum + range.length - 2, 0) === nodes.length
    );
  });
}

async function moveKeys(slot: number, from: ClusterNode, to: ClusterNode): Promise<void> {
  for (;;) {
    const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
    if (keys.length === 0) return;
    await from.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5_000, 'KEYS', ...keys);
  }
}

async function ownerSeenBy(node: ClusterNode, slot: number): Promise<unknown> {
  const ranges = (await node.call('CLUSTER', 'SLOTS')) as [number, number, Reply[]][];
  return ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][2];
}

async function replicaOf(nodes: readonly ClusterNode[], master: ClusterNode): Promise<ClusterNode> {
  const lines = (await master.call('CLUSTER', 'REPLICAS', master.id)) as string[];
  const replica = nodes.find(node => lines.some(line => line.startsWith(node.id)));
  if (replica === undefined) throw new Error('This master has no replica.');
  return replica;
}

async function clusterInfo(node: ClusterNode, field: string): Promise<string | undefined> {
  return new RegExp(`^${field}:(.*)\r$`, 'm').exec(String(await node.call('CLUSTER', 'INFO')))?.[1];
}

function running(nodes: readonly ClusterNode[]): readonly ClusterNode[] {
  return nodes.filter(node => node.running);
}

function first(nodes: readonly ClusterNode[]): ClusterNode {
  const [node] = running(nodes);
  if (node === undefined) throw new Error('No node of the cluster runs.');
  return node;
}
