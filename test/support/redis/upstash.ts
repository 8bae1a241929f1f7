import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { Connection, type Reply, ReplyError } from './connection.js';

/** An HTTP endpoint that speaks the REST protocol of Upstash in front of a real Redis, for the unmodified SDK. */
export interface UpstashEndpoint {
  readonly url: string;
  readonly token: string;
  readonly port: number;
  /** Waits so long before each answer, after the command ran. Change it at any time. */
  delayMs: number;
  /** HTTP requests so far: the round trips. */
  readonly requests: number;
  /** From now on connections are refused, and the open ones are cut. */
  refuse(): Promise<void>;
  /** Ends {@link refuse}: listens again, on the same port. */
  accept(): Promise<void>;
  close(): Promise<void>;
}

type Command = readonly (string | number)[];
type Answer = { readonly result: Reply } | { readonly error: string };

/**
 * `POST /` carries one command as a JSON array, `POST /pipeline` and `POST /multi-exec` an array of them. An error of the
 * server is status 400 with `{ error }`, in a pipeline an element of its own. With `Upstash-Encoding: base64` every string is
 * encoded, save a plain OK.
 */
export async function upstashEndpoint(
  redisPort: number,
  options: { readonly token?: string } = {},
): Promise<UpstashEndpoint> {
  const { token = 'upstash-test-token' } = options;
  let connection: Connection | undefined;
  let requests = 0;
  let delayMs = 0;

  const redis = async (): Promise<Connection> => {
    if (connection?.usable !== true) connection = await Connection.open(redisPort);
    return connection;
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const base64 = request.headers['upstash-encoding'] === 'base64';
    const send = async (status: number, body: unknown): Promise<void> => {
      if (delayMs > 0) await wait(delayMs);
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const body = await readJson(request);
    if (request.headers.authorization !== `Bearer ${token}`) return send(401, { error: 'Unauthorized' });
    if (request.method !== 'POST') return send(400, { error: 'ERR only POST is supported' });
    try {
      switch (request.url) {
        case '/': {
          const result = await one(await redis(), body);
          return await send('error' in result ? 400 : 200, encoded(result, base64));
        }
        case '/pipeline': {
          const target = await redis();
          const results = await Promise.all(commands(body).map(command => one(target, command)));
          return await send(
            200,
            results.map(result => encoded(result, base64)),
          );
        }
        case '/multi-exec': {
          const results = await transaction(await redis(), commands(body));
          return await send(
            200,
            results.map(result => encoded(result, base64)),
          );
        }
        default:
          return await send(404, { error: 'ERR no such path' });
      }
    } catch (error) {
      return send(error instanceof ReplyError || error instanceof SyntaxError ? 400 : 500, {
        error: error instanceof Error ? error.message : String(error),
      });
    }
  };

  const listen = async (port: number): Promise<Server> => {
    const server = createServer((request, response) => {
      requests++;
      answer(request, response).catch(() => {
        response.destroy();
      });
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };

  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    token,
    port,
    get delayMs() {
      return delayMs;
    },
    set delayMs(ms) {
      delayMs = ms;
    },
    get requests() {
      return requests;
    },
    refuse: close,
    async accept() {
      if (!server.listening) server = await listen(port);
    },
    async close() {
      await close();
      connection?.close();
    },
  };
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

function commands(body: unknown): unknown[] {
  if (Array.isArray(body) && body.length > 0 && body.every(Array.isArray)) return body as unknown[];
  throw new SyntaxError('ERR expected an array of commands');
}

function command(body: unknown): Command {
  if (
    Array.isArray(body) &&
    body.length > 0 &&
    body.every(part => ['string', 'number', 'boolean'].includes(typeof part))
  ) {
    return body.map(part => (typeof part === 'number' ? part : String(part)));
  }
  throw new SyntaxError('ERR expected a command as an array of strings and numbers');
}

function one(connection: Connection, body: unknown): Promise<Answer> {
  return connection.call(...command(body)).then(
    result => ({ result }),
    (error: unknown) => {
      if (error instanceof ReplyError) return { error: error.message };
      throw error;
    },
  );
}

async function transaction(connection: Connection, bodies: readonly unknown[]): Promise<Answer[]> {
  const list = bodies.map(command);
  // All written in one tick: nothing of another request comes between MULTI and EXEC.
  const queued = [['MULTI'], ...list].map(part => connection.call(...part));
  const executed = connection.call('EXEC');
  await Promise.allSettled(queued);
  const replies = (await executed) as Reply[];
  return replies.map(reply => (reply instanceof ReplyError ? { error: reply.message } : { result: reply }));
}

function encoded(answer: Answer, base64: boolean): unknown {
  if (!base64 || 'error' in answer) return answer;
  return { result: answer.result === 'OK' ? 'OK' : inBase64(answer.result) };
}

function inBase64(reply: Reply): Reply {
  if (typeof reply === 'string') return Buffer.from(reply, 'utf8').toString('base64');
  return Array.isArray(reply) ? reply.map(inBase64) : reply;
}
