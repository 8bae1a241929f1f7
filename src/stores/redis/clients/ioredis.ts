import { astray } from '../explain.js';
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
import { ManualMulti } from './ioredis-multi.js';
import { Reconnector } from './ioredis-probe.js';
import { Sent, SilenceWatch } from './ioredis-silence.js';

/** Written in place of a command that the client wants to send again: the order of replies stays right. */
const PING = '*1\r\n$4\r\nPING\r\n';

class SentCommand extends Sent {
  readonly command: IoredisCommand;

  constructor(command: IoredisCommand, expires: number) {
    super(expires);
    this.command = command;
  }
}

/** Connections without an address of their own, by number. */
let nameless = 0;

/** One server, or the master of a Sentinel. */
export class IoredisPort implements RedisPort {
  readonly topology = 'single';
  readonly keyPrefix: string;
  readonly #client: IoredisClient;
  readonly #Command: CommandClass;
  readonly #listeners: Listeners;
  readonly #multi: ManualMulti;
  readonly #reconnector: Reconnector;
  readonly #silence: SilenceWatch<SentCommand>;
  #stream: IoredisClient['stream'];
  #node: string | undefined;
  #wasReady: boolean;

  constructor(client: IoredisClient, Command: CommandClass) {
    this.#client = client;
    this.#Command = Command;
    this.keyPrefix = prefixOf(client);
    this.#wasReady = client.status === 'ready';
    this.#multi = new ManualMulti(client);
    this.#reconnector = new Reconnector(client);
    this.#silence = new SilenceWatch(client, this.#reconnector);
    this.#listeners = new Listeners(client);
    this.#listeners.on('ready', () => (this.#wasReady = true));
    // Errors reach the limiter's listeners; without one here the client would print them.
    this.#listeners.on('error', noop);
    this.#listeners.on('close', () => {
      this.#multi.lost();
      for (const { command } of this.#silence.underWay.list()) command.reject(connectionLost());
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
      // Before it is ready it may not have its address yet.
      const isReady = stream !== undefined && this.#client.status === 'ready';
      this.#node = isReady ? nameOf(stream, this.#client.options.path) : undefined;
    }
    return this.#node;
  }

  send(_key: string, args: readonly string[], expires: number): Promise<unknown> {
    // In any other state the client would queue it.
    if (this.#client.status !== 'ready' || this.#client.stream?.writable !== true) {
      return Promise.reject(notWritable());
    }
    if (this.#multi.isOpen) return Promise.reject(astray('is inside a MULTI'));
    // Without arguments: the command's own way to write them is four times as dear, and it would keep them. What watches the
    // client sees the name alone.
    const command = new this.#Command(args[0] ?? '', [], AS_TEXT);
    sendOnce(command, encoded(args));
    const { resolve, reject } = command;
    const entry = new SentCommand(command, expires);
    this.#silence.add(entry);
    command.resolve = reply => {
      this.#silence.remove(entry);
      resolve(reply);
    };
    command.reject = error => {
      this.#silence.remove(entry);
      reject(error);
      if (error.message.startsWith('READONLY')) this.#leaveReplica();
    };
    return sent(this.#client, command);
  }

  /**
   * The server has become a replica and kept its connections: the address, or the Sentinel, may know a master by now. Without a
   * new connection the client would stay where it is for ever, unless its user has set `reconnectOnError`. Where the address
   * still leads to a replica, the application's own reads on the client are left in peace.
   */
  #leaveReplica(): void {
    this.#reconnector.consider(answer => answer !== 'replica');
  }

  masters(): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]> {
    return Promise.resolve([args => this.send('', args, Infinity)]);
  }

  close(): void {
    this.#listeners.off();
    this.#multi.off();
    this.#silence.close();
  }
}

/** The server at the other end of a connection. One that has no address is known only as long as the connection lasts. */
function nameOf(
  { remoteAddress, remotePort }: NonNullable<IoredisClient['stream']>,
  path: string | undefined,
): string {
  if (remoteAddress !== undefined) return `${remoteAddress}:${String(remotePort)}`;
  return path === undefined ? `connection ${String(++nameless)}` : `unix:${path}`;
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
