import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A TCP proxy on 127.0.0.1 in front of a server: the network between an application and its Redis. */
export interface Proxy {
  readonly port: number;
  /** Replies arrive so much later (commands are passed on at once, so the server has run them). Change it at any time. */
  replyDelayMs: number;
  /** Connections open now. */
  readonly connections: number;
  /** Cuts every open connection; new ones are welcome. */
  cut(): void;
  /** The open connections go dead without a word, as behind a firewall that drops a flow; new ones are welcome. */
  drop(): void;
  close(): Promise<void>;
}

export async function startProxy(targetPort: number): Promise<Proxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  const dropped = new WeakSet<Socket>();
  let replyDelayMs = 0;
  const server: Server = createServer(caller => {
    const target = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
    caller.setNoDelay(true);
    const pair = [caller, target] as const;
    pairs.add(pair);
    const end = (): void => {
      if (dropped.has(caller) && !caller.closed) return;
      pairs.delete(pair);
      caller.destroy();
      target.destroy();
    };
    for (const socket of pair) socket.on('close', end).on('error', end);
    caller.on('data', chunk => {
      if (!dropped.has(caller)) target.write(chunk);
    });
    const waiting: { readonly due: number; readonly chunk: Buffer }[] = [];
    let timer: NodeJS.Timeout | undefined;
    const deliver = (): void => {
      timer = undefined;
      while (waiting[0] !== undefined && waiting[0].due <= performance.now()) {
        const { chunk } = waiting.shift()!;
        if (!dropped.has(caller)) caller.write(chunk);
      }
      if (waiting[0] !== undefined)
        timer = setTimeout(deliver, Math.ceil(waiting[0].due - performance.now()));
    };
    caller.on('close', () => {
      clearTimeout(timer);
    });
    target.on('data', chunk => {
      // Never earlier than the chunk before it: a shorter delay does not reorder what is on its way.
      const due = Math.max(waiting.at(-1)?.due ?? 0, performance.now() + replyDelayMs);
      waiting.push({ due, chunk });
      if (timer === undefined) deliver();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const cut = (): void => {
    for (const [caller, target] of [...pairs]) {
      caller.destroy();
      target.destroy();
    }
  };
  return {
    port,
    get replyDelayMs() {
      return replyDelayMs;
    },
    set replyDelayMs(ms) {
      replyDelayMs = ms;
    },
    get connections() {
      return pairs.size;
    },
    cut,
    drop() {
      for (const [caller] of pairs) dropped.add(caller);
    },
    async close() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
