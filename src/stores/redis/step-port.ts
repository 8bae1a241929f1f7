import { isLimitkeeperError } from '../../core/errors.js';
import { operatorCall } from '../../core/operator-call.js';
import type { Store } from '../../core/store.js';
import type { PortState, RedisPort } from './port.js';

/**
 * A port on which each command has the deadline of an operator's call: for walks that may take long as a whole, as long as
 * the server goes on answering.
 */
export class StepPort implements RedisPort {
  readonly #port: RedisPort;
  readonly #store: Store;
  readonly #call: string;

  /** @param call the name of the store's method, for errors */
  constructor(port: RedisPort, store: Store, call: string) {
    this.#port = port;
    this.#store = store;
    this.#call = call;
  }

  get topology(): RedisPort['topology'] {
    return this.#port.topology;
  }

  get keyPrefix(): string {
    return this.#port.keyPrefix;
  }

  state(key?: string): PortState {
    return this.#port.state(key);
  }

  awake(): void {
    this.#port.awake();
  }

  onChange(listener: () => void): void {
    this.#port.onChange(listener);
  }

  nodeOf(key: string): string | undefined {
    return this.#port.nodeOf(key);
  }

  send(key: string, args: readonly string[], expires: number): Promise<unknown> {
    return this.#step(() => this.#port.send(key, args, expires));
  }

  async masters(): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]> {
    const masters = await this.#step(() => this.#port.masters());
    return masters.map(send => args => this.#step(() => send(args)));
  }

  /** The port below belongs to the store. */
  close(): void {
    // Nothing of its own is open.
  }

  /** The client's own errors go through as they are: whoever sends looks for NOSCRIPT in them. */
  #step<T>(work: () => Promise<T>): Promise<T> {
    return operatorCall(this.#store, this.#call, work).catch((error: unknown) => {
      throw isLimitkeeperError(error) && error.code === 'ERR_LIMITKEEPER_STORE'
        ? (error.cause ?? error)
        : error;
    });
  }
}
