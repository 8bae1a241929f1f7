import { Agent, createServer, request } from 'node:http';
import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  /** Sent as JSON. */
  readonly json?: unknown;
}

export interface Served {
  readonly url: string;
  /** Over connections that are kept, so that a thousand requests take no thousand handshakes. */
  ask(path: string, asked?: Asked): Promise<Answer>;
  /** Sends a request and hangs up when `left` resolves, whatever has come by then. */
  askAndHangUp(path: string, left: Promise<void>, headers?: Record<string, string>): void;
  close(): Promise<void>;
}

/** An application on a real port of 127.0.0.1. */
export async function serve(app: RequestListener): Promise<Served> {
  const server = createServer(app);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 200 });
  const at = { host: '127.0.0.1', port } as const;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    ask: (path, { method, headers = {}, json } = {}) =>
      new Promise((resolve, reject) => {
        const body = json === undefined ? undefined : JSON.stringify(json);
        const req = request(
          {
            ...at,
            path,
            agent,
            method: method ?? (body === undefined ? 'GET' : 'POST'),
            headers: {
              ...(body === undefined
                ? {}
                : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
              ...headers,
            },
          },
          res => {
            let text = '';
            res.setEncoding('utf8');
            res.on('data', (chunk: string) => (text += chunk));
            res.on('end', () => resolve({ status: res.statusCode!, headers: res.headers, text }));
            res.on('error', reject);
          },
        );
        req.on('error', reject);
        req.end(body);
      }),
    askAndHangUp: (path, left, headers = {}) => {
      const req = request({ ...at, path, headers });
      req.on('error', () => undefined);
      req.on('response', res => {
        res.on('error', () => undefined);
        res.resume();
      });
      req.end();
      void left.then(() => req.destroy());
    },
    close: () =>
      new Promise((resolve, reject) => {
        agent.destroy();
        server.close(error => {
          if (error) reject(error);
          else resolve();
        });
        server.closeAllConnections();
      }),
  };
}
