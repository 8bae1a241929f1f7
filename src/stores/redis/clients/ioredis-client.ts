import { storeError } from '../../../core/errors.js';
import type { PortState } from '../port.js';

/** What is used of an ioredis client, 5 or 6. */
export interface IoredisClient {
  readonly status: string;
  readonly isCluster: boolean;
  readonly options: {
    readonly keyPrefix?: string | Uint8Array;
    readonly path?: string;
    readonly monitor?: boolean;
  };
  readonly stream?: {
    readonly writable?: boolean;
    readonly remoteAddress?: string;
    readonly remotePort?: number;
    readonly bytesRead?: number;
    destroy?(): unknown;
  };
  /** Its user has closed it; not documented. */
  readonly manuallyClosing?: boolean;
  /** Commands without a reply yet; not documented. */
  readonly commandQueue?: { peekFront?(): { readonly command?: { readonly name?: string } } | undefined };
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  sendCommand(command: IoredisCommand): unknown;
  duplicate?(override: object): IoredisClient;
  info?(section: string): Promise<string>;
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
export const AS_TEXT = { replyEncoding: 'utf8' } as const;

export const noop = (): void => undefined;

export function connectionLost(): Error {
  return storeError('ERR_LIMITKEEPER_STORE', 'the connection to Redis was lost before the reply came.');
}

export function notWritable(): Error {
  return storeError('ERR_LIMITKEEPER_STORE', 'Redis cannot be reached: the client is not connected.');
}

export function stateOf(client: IoredisClient, wasReady: boolean): PortState {
  if (client.status === 'ready') return 'ready';
  // Closed between two attempts to connect, the client makes no further one and never says that it has ended.
  const isGivenUp = client.status === 'reconnecting' && client.manuallyClosing === true;
  if (client.status === 'end' || isGivenUp) return 'ended';
  return wasReady ? 'down' : 'starting';
}

export const prefixOf = ({ options: { keyPrefix } }: IoredisClient): string =>
  keyPrefix === undefined
    ? ''
    : typeof keyPrefix === 'string'
      ? keyPrefix
      : Buffer.from(keyPrefix).toString();

/** Keeps the listeners put on a client, to take them off again. */
export class Listeners {
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

/**
 * Sends a command. Where its user has wrapped the client, what the wrapper throws or rejects with is how the command ends,
 * whether it was sent or not: nobody waits for it then.
 */
export function sent(client: IoredisClient, command: IoredisCommand): Promise<unknown> {
  const fail = command.reject;
  try {
    const reply = client.sendCommand(command);
    // Under tracing, too, the client answers with a promise of its own; the command has ended by the time that one rejects.
    if (reply !== command.promise && reply instanceof Promise) reply.catch(fail);
  } catch (error) {
    fail(error as Error);
  }
  return command.promise;
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
