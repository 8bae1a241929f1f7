import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRefusal } from './outcome.js';
import type { WebSocketLike } from './types.js';

/** IANA, WebSocket close codes: try again later. */
const TRY_AGAIN_LATER = 1013;

/** express-ws calls the middleware of `app.ws` with the socket in the place of the request. */
export function isWebSocket(first: object): first is WebSocketLike {
  return !('headers' in first) && 'close' in first && 'send' in first;
}

/**
 * A response that nobody reads, for a request that has become a socket: its handshake has been answered with 101. (One that
 * answers the handshake itself has the connection.)
 */
export function standsForSocket(res: ServerResponse): boolean {
  return res.socket === null && (res.req as { readonly upgrade?: boolean } | undefined)?.upgrade === true;
}

const SPEAKS = Symbol('limitkeeper.speaks');

/**
 * Lets a refusal on a stand-in reach the client: there is no status to send any more, so that it closes the socket, with the
 * status in the reason. Any other end does what it did before.
 */
export function speakForSocket(res: ServerResponse & { [SPEAKS]?: true }, socket: WebSocketLike): void {
  if (res[SPEAKS] === true) return;
  res[SPEAKS] = true;
  const end = res.end.bind(res) as (...args: unknown[]) => ServerResponse;
  const closingEnd = (...args: unknown[]): ServerResponse => {
    if (isRefusal(res)) socket.close(TRY_AGAIN_LATER, reasonOf(res));
    return end(...args);
  };
  res.end = closingEnd as typeof res.end;
}

function reasonOf(res: ServerResponse): string {
  const word = res.statusCode === 503 ? 'rate_limiter_unavailable' : 'rate_limit_exceeded';
  const wait = res.getHeader('Retry-After');
  const advice = wait === undefined ? '' : `, retry after ${String(wait)} s`;
  return `${String(res.statusCode)} ${word}${advice}`;
}

/**
 * Keeps what the client sends on a socket until `release` is called: its handler listens only once it has been let in, and
 * a message that came while a store was asked would meet nobody.
 *
 * @returns `release`
 */
export function holdMessages({ socket }: IncomingMessage): () => void {
  if (socket.readableFlowing !== true) return () => undefined;
  socket.pause();
  return () => {
    socket.resume();
  };
}
