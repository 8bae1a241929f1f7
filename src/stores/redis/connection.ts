import { portFor, refuseClosed } from './clients/detect.js';
import { Gate } from './gate.js';
import type { RedisPort } from './port.js';

/** What the stores of one client share, so that a store for each limiter does not mean listeners for each on the client. */
export interface Connection {
  readonly port: RedisPort;
  readonly gate: Gate;
  /** For each store once. The last one takes the listeners off; the client stays open. */
  close(): void;
}

const shared = new WeakMap<object, { readonly port: RedisPort; readonly gate: Gate; users: number }>();

/** @throws TypeError as `portFor` does. */
export function connectionOf(client: unknown): Connection {
  const known = typeof client === 'object' && client !== null ? shared.get(client) : undefined;
  if (known !== undefined) refuseClosed(client as object);
  const connection = known ?? open(client);
  connection.users += 1;
  let isOpen = true;
  return {
    port: connection.port,
    gate: connection.gate,
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      connection.users -= 1;
      if (connection.users > 0) return;
      shared.delete(client as object);
      connection.gate.close();
      connection.port.close();
    },
  };
}

function open(client: unknown): { readonly port: RedisPort; readonly gate: Gate; users: number } {
  const port = portFor(client);
  const connection = { port, gate: new Gate(port), users: 0 };
  shared.set(client as object, connection);
  return connection;
}
