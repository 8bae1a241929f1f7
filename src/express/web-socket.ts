import type * as Http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { load } from '../core/builtin.js';

/** What is needed of an open socket of the package `ws`. */
export interface WebSocketLike {
  close(code?: number, reason?: string): void;
  once(event: 'close', listener: () => void): unknown;
}

type Next = (error?: unknown) => void;

/** IANA, WebSocket close codes: try again later. */
const TRY_AGAIN_LATER = 1013;

/** express-ws calls the middleware of `app.ws` with the socket in the place of the request. */
export function isWebSocket(first: object): first is WebSocketLike {
  return !('headers' in first) && 'close' in first && 'send' in first;
}

/**
 * A response for the request of a socket. express-ws has answered the handshake by then, so that there is no status to send:
 * whatever ends it closes the socket, with the status in the reason. A socket that was let in has been answered with 101,
 * and ends when it closes.
 */
export function webSocketCall(
  socket: WebSocketLike,
  req: IncomingMessage,
  next: Next,
): [IncomingMessage, ServerResponse, Next] {
  const http = load('node:http') as typeof Http;
  const res = new http.ServerResponse(req);
  // With the methods of Express, which an `onLimited` may use.
  const { app } = req as { readonly app?: { readonly response: object } };
  if (app !== undefined) Object.setPrototypeOf(res, app.response);
  let isOpen = false;
  Object.defineProperty(res, 'headersSent', { get: () => isOpen });
  res.end = () => {
    const retryAfter = res.getHeader('Retry-After');
    const wait = retryAfter === undefined ? '' : `, retry after ${String(retryAfter)} s`;
    socket.close(TRY_AGAIN_LATER, `${String(res.statusCode)} rate_limit_exceeded${wait}`);
    return res;
  };
  socket.once('close', () => res.emit('close'));
  return [
    req,
    res,
    error => {
      if (error === undefined) {
        isOpen = true;
        res.statusCode = 101;
      }
      next(error);
    },
  ];
}
