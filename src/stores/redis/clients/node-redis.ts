import { setMaxListeners } from 'node:events';
import type { PortState, RedisPort } from '../port.js';
import { slotOf } from '../port.js';
import { notWritable } from './ioredis-client.js';

interface SendOptions {
  readonly abortSignal: AbortSignal;
  /** Plain replies, whatever mapping the user's client has by default. */
  readonly typeMapping: Readonly<Record<string, never>>;
}

interface Emitter {
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

interface Address {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
}

interface Openable extends Emitter {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  connect(): Promise<unknown>;
}

/** What is used of a node-redis client. */
export interface NodeRedisClient extends Openable {
  readonly options?: {
    readonly keyPrefix?: string;
    readonly socket?: Address;
  };
  readonly socketEpoch?: number;
  sendCommand(args: readonly string[], options: SendOptions): Promise<unknown>;
}

interface ClusterNode {
  readonly address: string;
  readonly client?: NodeRedisClient | undefined;
}

export interface NodeRedisCluster extends Openable {
  readonly masters: readonly ClusterNode[];
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[];
  nodeClient(node: ClusterNode): Promise<NodeRedisClient>;
  sendCommand(
    key: string,
    isReadonly: boolean,
    args: readonly string[],
    options: SendOptions,
  ): Promise<unknown>;
}

export interface NodeRedisSentinel extends Openable {
  /** Runs `send` on the master, again after a failure where the client thinks that it may. */
  _execute?(isReadonly: boolean, send: (client: NodeRedisClient) => Promise<unknown>): Promise<unknown>;
  getMasterNode?(): { readonly host: string; readonly port: number } | undefined;
}

const noop = (): void => undefined;

/** What the three kinds of client have in common. */
abstract class NodeRedisPort<C extends Openable> implements RedisPort {
  abstract readonly topology: 'single' | 'cluster';
  readonly keyPrefix: string;
  protected readonly client: C;
  readonly #listeners: [string, () => void][] = [];
  #wasReady: boolean;
  /** By its user. A connection that was lost, or never came about, emits neither of the events. */
  #wasClosed = false;
  #abort = newAbort();

  constructor(client: C, keyPrefix = '') {
    this.client = client;
    this.keyPrefix = keyPrefix;
    this.#wasReady = client.isReady;
    this.#on('ready', () => (this.#wasReady = true));
    for (const event of ['end', 'disconnect'])
      this.#on(event, () => {
        this.#wasClosed = !client.isOpen;
      });
    // Commands are written one `setImmediate` later: what is unwritten when the connection is lost must not stay queued.
    for (const event of ['reconnecting', 'end', 'error'])
      this.#on(event, () => {
        this.#dropQueued();
      });
  }

  #on(event: string, listener: () => void): void {
    this.client.on(event, listener);
    this.#listeners.push([event, listener]);
  }

  #dropQueued(): void {
    if (this.client.isReady) return;
    const old = this.#abort;
    this.#abort = newAbort();
    old.abort();
  }

  protected get sendOptions(): SendOptions {
    return { abortSignal: this.#abort.signal, typeMapping: {} };
  }

  state(key?: string): PortState {
    if (this.client.isReady) {
      this.#wasReady = true;
      return this.nodeState(key);
    }
    if (this.client.isOpen) this.#wasClosed = false;
    if (this.#wasClosed || (this.#wasReady && !this.client.isOpen)) return 'ended';
    return this.#wasReady ? 'down' : 'starting';
  }

  protected nodeState(_key?: string): PortState {
    return 'ready';
  }

  awake(): void {
    if (!this.client.isOpen && !this.#wasReady && !this.#wasClosed) this.client.connect().catch(noop);
  }

  onChange(listener: () => void): void {
    for (const event of ['ready', 'connect', 'end', 'disconnect']) this.#on(event, listener);
  }

  abstract nodeOf(key: string): string | undefined;
  abstract send(key: string, args: readonly string[], expires: number): Promise<unknown>;

  masters(): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]> {
    return Promise.resolve([args => this.send('', args, Infinity)]);
  }

  close(): void {
    for (const [event, listener] of this.#listeners.splice(0)) this.client.off(event, listener);
  }
}

/** The server that a client connects to. */
function nameOf({ options }: NodeRedisClient): string {
  const { host = 'localhost', port = 6379, path } = options?.socket ?? {};
  return path === undefined ? `${host}:${String(port)}` : `unix:${path}`;
}

function newAbort(): AbortController {
  const abort = new AbortController();
  setMaxListeners(0, abort.signal);
  return abort;
}

export class NodeRedisClientPort extends NodeRedisPort<NodeRedisClient> {
  readonly topology = 'single';

  constructor(client: NodeRedisClient) {
    super(client, client.options?.keyPrefix);
  }

  nodeOf(): string {
    return nameOf(this.client);
  }

  send(_key: string, args: readonly string[]): Promise<unknown> {
    if (!this.client.isReady) return Promise.reject(notWritable());
    return this.client.sendCommand(args, this.sendOptions);
  }
}

export class NodeRedisClusterPort extends NodeRedisPort<NodeRedisCluster> {
  readonly topology = 'cluster';

  #node(key: string): ClusterNode | undefined {
    return this.client.slots[slotOf(key)]?.master;
  }

  nodeOf(key: string): string | undefined {
    return this.#node(key)?.address;
  }

  protected override nodeState(key?: string): PortState {
    const node = key === undefined ? undefined : this.#node(key)?.client;
    // A node without a client is connected to when the first command comes.
    return node === undefined || node.isReady ? 'ready' : 'down';
  }

  send(key: string, args: readonly string[]): Promise<unknown> {
    if (!this.client.isReady || this.nodeState(key) !== 'ready') return Promise.reject(notWritable());
    return this.client.sendCommand(key, false, args, this.sendOptions);
  }

  override async masters(): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]> {
    const clients = await Promise.all(this.client.masters.map(node => this.client.nodeClient(node)));
    return clients.map(client => args => client.sendCommand(args, this.sendOptions));
  }
}

export class NodeRedisSentinelPort extends NodeRedisPort<NodeRedisSentinel> {
  readonly topology = 'single';

  /** Which server is the master may change at any time, and its clock with it. */
  nodeOf(): string | undefined {
    return this.#master;
  }

  #master: string | undefined;

  send(_key: string, args: readonly string[], expires: number): Promise<unknown> {
    const { client, sendOptions } = this;
    if (!client.isReady || client._execute === undefined) return Promise.reject(notWritable());
    let tried = false;
    // The client starts anew after some failures, so it is told of none.
    const attempt = async (master: NodeRedisClient): Promise<unknown> => {
      if (tried || performance.now() > expires) throw notWritable();
      tried = true;
      this.#master = nameOf(master);
      return master.sendCommand(args, sendOptions);
    };
    return new Promise((resolve, reject) => {
      client
        ._execute?.(false, master => {
          const outcome = attempt(master);
          outcome.then(resolve, reject);
          return outcome.catch(() => undefined);
        })
        .catch(reject);
    });
  }
}
