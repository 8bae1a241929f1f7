import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Reply } from './reply.js';

/** For every answer: it is about now, for one reader, and is nothing to frame, sniff or refer from. */
const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
};

/** The safe headers, then those of the reply. Nothing of Express: its settings (ETags, JSON spaces) stay out of it. */
export function writeHead(
  res: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
): void {
  res.statusCode = status;
  for (const [name, value] of Object.entries({ ...SAFE_HEADERS, ...headers })) res.setHeader(name, value);
}

/** Writes a reply, once; a response that somebody has begun or that is gone stays as it is. */
export function send(req: IncomingMessage, res: ServerResponse, reply: Reply): void {
  if (res.headersSent || res.writableEnded || res.destroyed) return;
  const text = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body);
  writeHead(res, reply.status, {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(text)),
    ...reply.headers,
  });
  res.end(req.method === 'HEAD' ? undefined : text);
}

/** The path below the mount, without a slash at its end; `/` for the mount itself. Never decoded. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  const path = url.split('?', 1)[0] ?? '/';
  return path.length > 1 ? path.replace(/\/$/, '') : path;
}

/** The query as it came, whatever query parser the application has set. */
export function queryOf({ url = '/' }: IncomingMessage): URLSearchParams {
  const start = url.indexOf('?');
  return new URLSearchParams(start < 0 ? '' : url.slice(start + 1));
}
