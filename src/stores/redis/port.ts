/**
 * What the store needs of a Redis client: one file per client under `clients/` provides it.
 *
 * The contract is stricter than any client's own: a command is sent now or not at all, and it is sent once. Clients by
 * default queue commands while they are offline and repeat them after a reconnect, and a limiter can use neither: a count
 * that comes late is wrong, and one that comes twice is wrong, too.
 */
export interface RedisPort {
  /** `single`: one server at a time holds all keys (also behind Sentinel). `cluster`: every slot has its own. */
  readonly topology: 'single' | 'cluster';
  /** Put before every key by the client's own option; the port sends keys as they are, so the store does it. */
  readonly keyPrefix: string;
  /** May the command for this key (any key, when left out) be sent now? */
  state(key?: string): PortState;
  /** Starts a client that has not been started, and calls back whenever the answer of {@link state} may have changed. */
  awake(): void;
  onChange(listener: () => void): void;
  /** The server that holds the key, as a name; `undefined` where it cannot be told. */
  nodeOf(key: string): string | undefined;
  /**
   * Sends one command to the server of `key`. Rejects, and has not queued anything, when it cannot be written now;
   * rejects when the connection is lost before the reply, and does not repeat it. Redirections of a cluster (MOVED, ASK)
   * are followed: such a command has not run.
   *
   * @param args the command's name in lower case, in which clients look it up, and its arguments
   * @param expires time of `performance.now()` from which it must not be sent any more
   */
  send(key: string, args: readonly string[], expires: number): Promise<unknown>;
  /** One sender for each server that holds keys, to walk through all keys. */
  masters(): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]>;
  /** Takes off the listeners that were put on the client. The client stays as it is. */
  close(): void;
}

/**
 * `ready`: send. `starting`: it has never been ready and may become so. `down`: it was ready and is not now, though it may
 * come back. `ended`: its user has closed it.
 */
export type PortState = 'ready' | 'starting' | 'down' | 'ended';

/** Replies as clients hand them out: text as a string or, from some, as bytes. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : '';

/** The first word of an error reply: `NOSCRIPT`, `CROSSSLOT`, `MOVED`; of another error, whatever it begins with. */
export function errorWord(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  // The Upstash client quotes the server's message in its own: "NOSCRIPT …, command was: …".
  return /^(?:ERR )?([A-Z]+)/.exec(message)?.[1] ?? '';
}

/** CRC16 (XMODEM) of the key's hash tag, modulo 16384: the slot of Redis Cluster. */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  const tag = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    crc &= 0xffff;
  }
  return crc % 16384;
}
