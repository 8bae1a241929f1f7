import http from 'node:http';
import type { AddressInfo } from 'node:net';
import express5 from 'express';
import express4 from 'express4';
import type { Application } from 'express';

/** Both majors under the types of one of them: what our middleware uses of them is the same. */
export type Express = typeof express5;
export const EXPRESSES: readonly (readonly [name: string, express: Express])[] = [
  ['Express 5', express5],
  ['Express 4', express4 as unknown as Express],
];

export interface Reply {
  readonly status: number;
  readonly statusText: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface Call {
  readonly method?: string;
  readonly headers?: http.OutgoingHttpHeaders;
  /** A text, or what is sent as JSON. */
  readonly body?: unknown;
  /** Keeps connections; without one each request has a connection of its own. */
  readonly agent?: http.Agent;
}

const servers = new Set<http.Server>();

/** Serves an app on a free port of the loopback interface; {@link closeServers} ends it. */
export async function serve(app: Application | http.RequestListener | http.Server): Promise<string> {
  const server = app instanceof http.Server ? app : http.createServer(app as http.RequestListener);
  servers.add(server);
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

/** For `afterEach`. */
export async function closeServers(): Promise<void> {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise(done => server.close(done));
  }
  servers.clear();
}

/** One request, and the whole answer. */
export function call(url: string, { method = 'GET', headers = {}, body, agent }: Call = {}): Promise<Reply> {
  const payload = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const isJson = payload !== undefined && typeof body !== 'string';
  return new Promise((resolve, reject) => {
    const request = http.request(
      url,
      {
        method,
        agent: agent ?? false,
        headers: {
          ...(isJson ? { 'Content-Type': 'application/json' } : {}),
          ...(payload === undefined ? {} : { 'Content-Length': Buffer.byteLength(payload) }),
          ...headers,
        },
      },
      response => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', chunk => (text += String(chunk)));
        response.on('error', reject);
        response.on('end', () => {
          resolve({
            status: response.statusCode ?? 0,
            statusText: response.statusMessage ?? '',
            headers: response.headers,
            body: text,
          });
        });
      },
    );
    request.on('error', reject);
    request.end(payload);
  });
}

/** A request of which the client thinks better: `abort()` cuts the connection. */
export function cutShort(
  url: string,
  { method = 'GET', headers = {} }: Call = {},
): {
  abort: () => void;
  gone: Promise<void>;
} {
  const request = http.request(url, { method, agent: false, headers });
  const gone = new Promise<void>(resolve => {
    request.on('close', resolve);
  });
  request.on('error', () => {});
  request.on('response', response => response.on('error', () => {}).resume());
  request.end();
  return { abort: () => request.destroy(), gone };
}

/** The requests one after another, and their statuses. */
export async function statuses(count: number, send: (i: number) => Promise<Reply>): Promise<number[]> {
  const list: number[] = [];
  for (let i = 0; i < count; i += 1) list.push((await send(i)).status);
  return list;
}

/** So many requests at once. */
export function together(count: number, send: (i: number) => Promise<Reply>): Promise<Reply[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => send(i)));
}

/** A gate that handlers wait at until the test opens it. */
export class Gate {
  readonly passed: Promise<void>;
  open: () => void = () => {};

  constructor() {
    this.passed = new Promise(done => (this.open = done));
  }
}

export function times(count: number, value: number): number[] {
  return Array.from({ length: count }, () => value);
}

/** How often each status came. */
export function tally(replies: readonly Reply[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Waits until something is so, for at most ten seconds. */
export async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 10_000;
  while (!isSo()) {
    if (performance.now() > end) throw new Error('it did not become so within ten seconds');
    await pause(2);
  }
}

export const pause = (ms: number): Promise<void> => new Promise(done => setTimeout(done, ms));
