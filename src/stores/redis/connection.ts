import { portFor, refuseClosed } from './clients/detect.js';
import { Gate } from './gate.js';
import { LastError } from './last-error.js';
import type { RedisPort } from './port.js';

/** What the stores of one client share, so that a store for each limiter does not mean listeners for each on the client. */
export interface Connection {
  readonly port: RedisPort;
  readonly gate: Gate;
  readonly lastError: LastError;
  /** For each store once. The last one takes the listeners off; the client stays open. */
  close(): void;
}

interface Shared {
  readonly port: RedisPort;
  readonly gate: Gate;
  readonly lastError: LastError;
  users: number;
}

const shared = new WeakMap<object, Shared>();

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
    lastError: connection.lastError,
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      connection.users -= 1;
      if (connection.users > 0) return;
      shared.delete(client as object);
      connection.gate.close();
      connection.lastError.close();
      connection.port.close();
    },
  };
}

function open(client: unknown): Shared {
  const port = portFor(client);
  const lastError = new LastError(client as object, () => port.state());
  const connection = { port, gate: new Gate(port), lastError, users: 0 };
  shared.set(client as object, connection);
  return connection;
}
