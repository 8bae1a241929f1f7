import type { PortState, RedisPort } from '../port.js';
import { slotOf } from '../port.js';
import { AS_TEXT, Listeners, noop, notWritable, prefixOf, sent, stateOf } from './ioredis-client.js';
import type { CommandClass, IoredisClient, IoredisCommand } from './ioredis-client.js';
import { Sent, SilenceWatch } from './ioredis-silence.js';

/** A cluster client; what is optional here is not documented there. */
export interface IoredisCluster extends IoredisClient {
  nodes(role: 'master'): IoredisClient[];
  readonly slots?: readonly (readonly string[] | undefined)[];
  readonly connectionPool?: { getInstanceByKey?(key: string): IoredisClient | undefined };
}

/** A Redis Cluster. */
export class IoredisClusterPort implements RedisPort {
  readonly topology = 'cluster';
  readonly keyPrefix: string;
  readonly #cluster: IoredisCluster;
  readonly #listeners: Listeners;
  /** Node connections that were ready once. */
  readonly #seen = new WeakSet<IoredisClient>();
  readonly #Command: CommandClass;
  /** By node. A connection that was closed takes its watch along. */
  readonly #watches = new Map<IoredisClient, SilenceWatch<Sent>>();
  #wasReady: boolean;

  constructor(cluster: IoredisCluster, Command: CommandClass) {
    this.#cluster = cluster;
    this.#Command = Command;
    this.keyPrefix = prefixOf(cluster);
    this.#wasReady = cluster.status === 'ready';
    this.#listeners = new Listeners(cluster);
    this.#listeners.on('ready', () => (this.#wasReady = true));
    this.#listeners.on('error', noop);
    this.#listeners.on('-node', () => {
      this.#forgetEnded();
    });
  }

  state(key?: string): PortState {
    const state = stateOf(this.#cluster, this.#wasReady);
    const node = state === 'ready' && key !== undefined ? this.#node(key) : undefined;
    // A node whose connection is only made when it is needed ('wait') is as good as ready.
    if (node === undefined || node.status === 'wait') return state;
    if (node.status === 'ready') this.#seen.add(node);
    return stateOf(node, this.#seen.has(node)) === 'ended' ? 'down' : stateOf(node, this.#seen.has(node));
  }

  awake(): void {
    if (this.#cluster.status === 'wait') this.#cluster.connect().catch(noop);
  }

  onChange(listener: () => void): void {
    for (const event of ['ready', 'end', '+node', '-node']) this.#listeners.on(event, listener);
  }

  nodeOf(key: string): string | undefined {
    return this.#cluster.slots?.[slotOf(key)]?.[0];
  }

  #node(key: string): IoredisClient | undefined {
    const name = this.nodeOf(key);
    return name === undefined ? undefined : this.#cluster.connectionPool?.getInstanceByKey?.(name);
  }

  #watchOf(node: IoredisClient): SilenceWatch<Sent> {
    const known = this.#watches.get(node);
    if (known !== undefined) return known;
    const watch = new SilenceWatch<Sent>(node);
    this.#watches.set(node, watch);
    return watch;
  }

  #forgetEnded(): void {
    for (const [node, watch] of this.#watches) {
      if (node.status !== 'end') continue;
      watch.close();
      this.#watches.delete(node);
    }
  }

  send(key: string, args: readonly string[], expires: number): Promise<unknown> {
    if (this.#cluster.status !== 'ready') return Promise.reject(notWritable());
    const [name = '', ...rest] = args;
    const command = new this.#Command(name, rest, AS_TEXT);
    const node = this.#node(key);
    if (node !== undefined) watched(command, this.#watchOf(node), expires);
    const fail = command.reject;
    void sent(this.#cluster, command);
    // The cluster client has put its own `reject` in place, which sends the command again after a redirection, but also
    // after a lost connection, where it may have run already.
    const redirect = command.reject;
    command.reject = error => {
      if (/^(?:MOVED|ASK) /.test(error.message)) redirect(error);
      else fail(error);
    };
    return command.promise;
  }

  masters(): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]> {
    return Promise.resolve(
      this.#cluster.nodes('master').map(node => ([name = '', ...rest]: readonly string[]) => {
        const command = new this.#Command(name, rest, AS_TEXT);
        return sent(node, command);
      }),
    );
  }

  close(): void {
    this.#listeners.off();
    for (const watch of this.#watches.values()) watch.close();
    this.#watches.clear();
  }
}

/** Keeps the call in view until it ends, however it ends. */
function watched(command: IoredisCommand, watch: SilenceWatch<Sent>, expires: number): void {
  const entry = new Sent(expires);
  watch.add(entry);
  const { resolve, reject } = command;
  command.resolve = reply => {
    watch.remove(entry);
    resolve(reply);
  };
  command.reject = error => {
    watch.remove(entry);
    reject(error);
  };
}
