import type { IncomingHttpHeaders } from 'node:http';

/** What is needed of a request. `originalMethod` is what `method-override` leaves where it has changed the method. */
export interface PreflightRequest {
  readonly method?: string | undefined;
  readonly originalMethod?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** HTTP/2, where a body announces itself in no header. */
  readonly stream?: { readonly endAfterHeaders?: boolean } | undefined;
}

/**
 * Does it look like a CORS preflight (Fetch standard), which a browser asks on its own? Anyone can send one that does.
 *
 * Browsers send no body and no credentials with it: with any of them it is not theirs, so not even a limiter that leaves
 * preflights out lets passwords or tokens be guessed in one. Nor is it theirs where a middleware made it `OPTIONS`.
 */
export function isPreflight({
  method,
  originalMethod = 'OPTIONS',
  headers,
  stream,
}: PreflightRequest): boolean {
  return (
    method === 'OPTIONS' &&
    originalMethod === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined &&
    headers.authorization === undefined &&
    headers.cookie === undefined &&
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) === 0 &&
    stream?.endAfterHeaders !== false
  );
}
