import { Flying, InFlight } from '../../../core/in-flight.js';
import type { PortState, RedisPort } from '../port.js';
import {
  AS_TEXT,
  connectionLost,
  Listeners,
  noop,
  notWritable,
  prefixOf,
  sent,
  stateOf,
} from './ioredis-client.js';
import type { CommandClass, IoredisClient, IoredisCommand } from './ioredis-client.js';

/** Written in place of a command that the client wants to send again: the order of replies stays right. */
const PING = '*1\r\n$4\r\nPING\r\n';

const RECONNECT_EVERY_MS = 1000;

class Sent extends Flying {
  readonly command: IoredisCommand;

  constructor(command: IoredisCommand) {
    super();
    this.command = command;
  }
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
    // Without arguments: the command's own way to write them is four times as dear, and it would keep them. What watches the
    // client sees the name alone.
    const command = new this.#Command(args[0] ?? '', [], AS_TEXT);
    sendOnce(command, encoded(args));
    const { resolve, reject } = command;
    const entry = new Sent(command);
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
    return sent(this.#client, command);
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
