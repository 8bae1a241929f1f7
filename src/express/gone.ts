import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Flying, InFlight } from '../core/in-flight.js';

/** A response of HTTP/2 has neither `closed` nor `destroyed`: its stream tells. */
type AnyResponse = ServerResponse & {
  readonly stream?: { readonly destroyed?: boolean; readonly closed?: boolean };
};

/**
 * The client went away, or all was sent. True from the moment when the connection is cut: the response itself hears of it
 * a little later, and what a handler answers in between reaches nobody.
 */
export function isGone(res: AnyResponse): boolean {
  if (res.closed || res.destroyed) return true;
  const { stream } = res;
  if (stream !== undefined) return stream.destroyed === true || stream.closed === true;
  const socket = connectionOf(res);
  // Strictly: what stands for a socket in tests without a network says nothing of either.
  return socket !== undefined && (socket.destroyed || (socket.writable as boolean | undefined) === false);
}

/** Hears that a response is closed, with or without an end. */
export abstract class CloseWatch extends Flying {
  #line: InFlight<CloseWatch> | undefined = undefined;

  abstract closed(): void;

  /** From now on, however often it is told. */
  protected watch(res: AnyResponse): void {
    res.once('close', () => {
      this.closed();
    });
    // A request that came behind another on its connection, and one that became a WebSocket: the response has no socket
    // (yet) whose end it would hear of.
    const socket = res.socket === null && res.stream === undefined ? connectionOf(res) : undefined;
    if (socket === undefined || typeof (socket.once as unknown) !== 'function') return;
    this.#line = lineOf(socket);
    this.#line.add(this);
  }

  /** It need not be told any more. */
  protected unwatch(): void {
    this.#line?.remove(this);
  }
}

const LINE = Symbol('limitkeeper.line');

/** Those that wait for the end of a connection: one listener for all of them, since a client may send any number at once. */
function lineOf(socket: Socket & { [LINE]?: InFlight<CloseWatch> }): InFlight<CloseWatch> {
  const known = socket[LINE];
  if (known !== undefined) return known;
  const line = new InFlight<CloseWatch>();
  socket[LINE] = line;
  socket.once('close', () => {
    for (const watch of line.list()) watch.closed();
  });
  return line;
}

function connectionOf(res: ServerResponse): Socket | undefined {
  // Node sets it, but not everybody who makes a response.
  return (res.req as { readonly socket?: Socket } | undefined)?.socket ?? undefined;
}
