import type { ServerResponse } from 'node:http';

type Method = (...args: unknown[]) => unknown;

/** What changes the head of a response. `flushHeaders` and `writeHead` would send it. */
const HEAD = [
  'setHeader',
  'setHeaders',
  'appendHeader',
  'removeHeader',
  'writeHead',
  'flushHeaders',
] as const;

/**
 * Seals a response that its handler has ended and that has not left yet: whatever is set or written until `unseal` is
 * dropped, e.g. by an error handler that takes the response for unanswered, since `headersSent` is still false.
 *
 * Such a handler may come back when all is sent: Express's own error page looks at `headersSent` first and writes when the
 * request has been read. Node would throw then, with nobody there to catch, so afterwards too nothing happens in place of
 * an error.
 *
 * @returns `unseal`
 */
export function seal(res: ServerResponse): () => void {
  let sealed = true;
  const methods = res as unknown as Record<string, Method>;
  for (const name of HEAD) {
    const original = methods[name]?.bind(res);
    if (original === undefined) continue;
    methods[name] = (...args) => (sealed || res.headersSent ? res : original(...args));
  }
  const write = res.write.bind(res) as Method;
  methods['write'] = (...args) => {
    if (!sealed && !res.writableEnded) return write(...args);
    const callback = args.find(arg => typeof arg === 'function') as Method | undefined;
    if (callback !== undefined) process.nextTick(callback, new Error('write after end'));
    return false;
  };
  // HTTP/2 has no message, and warns of whoever asks for it.
  const hasMessage = !('stream' in res);
  const { statusCode } = res;
  const statusMessage = hasMessage ? res.statusMessage : '';
  // Where headers have gone out, an error handler would cut the connection, and with it the answer that is still held.
  const hides = res.headersSent;
  if (hides) Object.defineProperty(res, 'headersSent', { value: false, configurable: true });
  return () => {
    sealed = false;
    if (hides) delete (res as { headersSent?: boolean }).headersSent;
    if (res.headersSent) return;
    res.statusCode = statusCode;
    if (hasMessage) res.statusMessage = statusMessage;
  };
}
