import { storeError } from '../../../core/errors.js';
import { InFlight } from '../../../core/in-flight.js';
import type { Flying } from '../../../core/in-flight.js';
import type { PortState, RedisPort } from '../port.js';
import { slotOf } from '../port.js';

/** What is used of an ioredis client, 5 or 6. */
export interface IoredisClient {
  readonly status: string;
  readonly isCluster: boolean;
  readonly options: { readonly keyPrefix?: string | Uint8Array };
  readonly stream?: {
    readonly writable?: boolean;
    readonly remoteAddress?: string;
    readonly remotePort?: number;
  };
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  sendCommand(command: IoredisCommand): unknown;
}

/** A cluster client; what is optional here is not documented there. */
export interface IoredisCluster extends IoredisClient {
  nodes(role: 'master'): IoredisClient[];
  readonly slots?: readonly (readonly string[] | undefined)[];
  readonly connectionPool?: { getInstanceByKey?(key: string): IoredisClient | undefined };
}

export interface IoredisCommand {
  readonly promise: Promise<unknown>;
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
  toWritable: () => string;
}

export type CommandClass = new (
  name: string,
  args: readonly string[],
  options: typeof AS_TEXT,
) => IoredisCommand;

/** Replies are handed out as text, and not as bytes. */
const AS_TEXT = { replyEncoding: 'utf8' } as const;

/** Written in place of a command that the client wants to send again: the order of replies stays right. */
const PING = '*1\r\n$4\r\nPING\r\n';

const RECONNECT_EVERY_MS = 1000;

const noop = (): void => undefined;

export function connectionLost(): Error {
  return storeError('ERR_LIMITKEEPER_STORE', 'the connection to Redis was lost before the reply came.');
}

export function notWritable(): Error {
  return storeError('ERR_LIMITKEEPER_STORE', 'Redis cannot be reached: the client is not connected.');
}

function stateOf(client: IoredisClient, wasReady: boolean): PortState {
  if (client.status === 'ready') return 'ready';
  if (client.status === 'end') return 'ended';
  return wasReady ? 'down' : 'starting';
}

const prefixOf = ({ options: { keyPrefix } }: IoredisClient): string =>
  keyPrefix === undefined
    ? ''
    : typeof keyPrefix === 'string'
      ? keyPrefix
      : Buffer.from(keyPrefix).toString();

/** Keeps the listeners put on a client, to take them off again. */
class Listeners {
  readonly #client: IoredisClient;
  readonly #listeners: [string, () => void][] = [];

  constructor(client: IoredisClient) {
    this.#client = client;
  }

  on(event: string, listener: () => void): void {
    this.#client.on(event, listener);
    this.#listeners.push([event, listener]);
  }

  off(): void {
    for (const [event, listener] of this.#listeners.splice(0)) this.#client.off(event, listener);
  }
}

/** @throws whatever the client throws where its user has wrapped it; such a command was not sent. */
function sent(client: IoredisClient, command: IoredisCommand): Promise<unknown> {
  const reply = client.sendCommand(command);
  // Under tracing the client answers with a promise of its own beside the command's; nobody waits for that one.
  if (reply !== command.promise && reply instanceof Promise) reply.catch(noop);
  return command.promise;
}

interface Sent extends Flying {
  readonly command: IoredisCommand;
}

/** One server, or the master of a Sentinel. */
export class IoredisPort implements RedisPort {
  readonly topology = 'single';
  readonly keyPrefix: string;
  readonly #client: IoredisClient;
  readonly #Command: CommandClass;
  readonly #listeners: Listeners;
  readonly #underWay = new InFlight<Sent>();
  #reconnectedAt = -Infinity;
  #stream: IoredisClient['stream'];
  #node: string | undefined;
  #wasReady: boolean;

  constructor(client: IoredisClient, Command: CommandClass) {
    this.#client = client;
    this.#Command = Command;
    this.keyPrefix = prefixOf(client);
    this.#wasReady = client.status === 'ready';
    this.#listeners = new Listeners(client);
    this.#listeners.on('ready', () => (this.#wasReady = true));
    // Errors reach the limiter's listeners; without one here the client would print them.
    this.#listeners.on('error', noop);
    this.#listeners.on('close', () => {
      for (const { command } of this.#underWay.list()) command.reject(connectionLost());
    });
  }

  state(): PortState {
    return stateOf(this.#client, this.#wasReady);
  }

  awake(): void {
    if (this.#client.status === 'wait') this.#client.connect().catch(noop);
  }

  onChange(listener: () => void): void {
    for (const event of ['ready', 'end']) this.#listeners.on(event, listener);
  }

  nodeOf(): string | undefined {
    const { stream } = this.#client;
    // Asked for every call, and the same as long as the connection is.
    if (stream !== this.#stream || this.#node === undefined) {
      this.#stream = stream;
      const { remoteAddress, remotePort } = stream ?? {};
      this.#node = remoteAddress === undefined ? undefined : `${remoteAddress}:${String(remotePort)}`;
    }
    return this.#node;
  }

  send(_key: string, args: readonly string[]): Promise<unknown> {
    // In any other state the client would queue it.
    if (this.#client.status !== 'ready' || this.#client.stream?.writable !== true) {
      return Promise.reject(notWritable());
    }
    // Without arguments: the command's own way to write them is four times as dear, and it would keep them.
    const command = new this.#Command(args[0] ?? '', [], AS_TEXT);
    sendOnce(command, encoded(args));
    const { resolve, reject } = command;
    const entry: Sent = { place: undefined, command };
    this.#underWay.add(entry);
    command.resolve = reply => {
      this.#underWay.remove(entry);
      resolve(reply);
    };
    command.reject = error => {
      this.#underWay.remove(entry);
      reject(error);
      if (error.message.startsWith('READONLY')) this.#reconnect();
    };
    try {
      return sent(this.#client, command);
    } catch (error) {
      this.#underWay.remove(entry);
      throw error;
    }
  }

  /**
   * The server has become a replica and kept its connections: the address, or the Sentinel, knows a master by now. Without a
   * new connection the client would stay where it is for ever, unless its user has set `reconnectOnError`.
   */
  #reconnect(): void {
    const now = performance.now();
    if (now - this.#reconnectedAt < RECONNECT_EVERY_MS) return;
    this.#reconnectedAt = now;
    this.#client.disconnect(true);
  }

  masters(): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]> {
    return Promise.resolve([args => this.send('', args)]);
  }

  close(): void {
    this.#listeners.off();
  }
}

/**
 * After a reconnect ioredis writes all commands again that had no reply (`autoResendUnfulfilledCommands`, by default on).
 * The first time it asks a command of ours for its bytes it gets them; later it gets a PING.
 */
function sendOnce(command: IoredisCommand, text: string): void {
  let next = text;
  command.toWritable = () => {
    const now = next;
    next = PING;
    return now;
  };
}

/** A command as Redis reads it: an array of bulk strings, each behind its length in bytes (RESP). */
function encoded(args: readonly string[]): string {
  const lines = [`*${String(args.length)}`];
  for (const arg of args) lines.push(`$${String(Buffer.byteLength(arg))}`, arg);
  // An empty last line: each ends with CRLF.
  lines.push('');
  return lines.join('\r\n');
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
  #wasReady: boolean;

  constructor(cluster: IoredisCluster, Command: CommandClass) {
    this.#cluster = cluster;
    this.#Command = Command;
    this.keyPrefix = prefixOf(cluster);
    this.#wasReady = cluster.status === 'ready';
    this.#listeners = new Listeners(cluster);
    this.#listeners.on('ready', () => (this.#wasReady = true));
    this.#listeners.on('error', noop);
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

  send(_key: string, args: readonly string[]): Promise<unknown> {
    if (this.#cluster.status !== 'ready') return Promise.reject(notWritable());
    const [name = '', ...rest] = args;
    const command = new this.#Command(name, rest, AS_TEXT);
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
  }
}

/**
 * The client's own class of commands, which its package exports but its instances do not show: taken from a command that the
 * client makes and that is caught on its way to the connection.
 */
export function commandClassOf(client: IoredisClient): CommandClass | undefined {
  let caught: object | undefined;
  const shadow = Object.create(client, {
    options: { value: { ...client.options, enableAutoPipelining: false } },
    sendCommand: {
      value: (command: object) => {
        caught = command;
        return Promise.resolve();
      },
    },
  }) as { ping?: () => unknown };
  if (typeof shadow.ping !== 'function') return undefined;
  shadow.ping();
  return caught?.constructor as CommandClass | undefined;
}
