import type { IncomingMessage } from 'node:http';
import { problem, refuse, Refusal } from './reply.js';

/** The most that a body may have, in bytes. */
export const BODY_LIMIT = 16 * 1024;
/** A refused body is still read this far, unseen: a connection cut at once would take the answer with it. */
const DRAIN_LIMIT = 16 * 1024 * 1024;

/** A request on which a body parser may have been at work before. */
export interface BodiedRequest extends IncomingMessage {
  body?: unknown;
}

/**
 * The body as JSON, at most 16 kB of it in memory.
 *
 * @throws Refusal 400 where there is none, or none that is JSON; 413 where it is too large.
 */
export async function readJson(req: BodiedRequest): Promise<unknown> {
  const { headers } = req;
  const length = headers['content-length'];
  // Express 4's parser makes an empty object of no body at all: the headers know better.
  if (headers['transfer-encoding'] === undefined && (length === undefined || Number(length) === 0)) {
    refuse(400, 'A JSON body is needed, and none came.');
  }
  if (Number(length ?? 0) > BODY_LIMIT) tooLarge(req);
  // A form of another site can send any other type with the reader's cookies, but not this one.
  if (!/^application\/(?:[\w.-]+\+)?json *(?:;|$)/i.test(headers['content-type'] ?? '')) {
    refuse(400, 'The body must be JSON, sent with Content-Type: application/json.');
  }
  const { body } = req;
  if (body !== undefined && !Buffer.isBuffer(body) && typeof body !== 'string') return body;
  if (!/^(?:identity)?$/i.test(headers['content-encoding'] ?? '')) {
    refuse(400, 'The body must be JSON as it is, without a Content-Encoding.');
  }
  if (body === undefined && req.readableEnded) {
    refuse(
      400,
      'There is no body left: a parser before this router has read it and left nothing in req.body.',
    );
  }
  const bytes = body === undefined ? await collect(req) : Buffer.from(body);
  if (bytes.length > BODY_LIMIT) tooLarge(req);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    return refuse(400, 'The body is not valid JSON in UTF-8.');
  }
}

/** What arrives, up to a little over the limit. */
async function collect(req: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const done = (): void => {
      req.off('data', take);
      resolve(Buffer.concat(chunks));
    };
    const take = (chunk: Buffer): void => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > BODY_LIMIT) done();
    };
    req.on('data', take);
    req.once('end', done);
    const gone = (): void => {
      reject(new Refusal(problem(400, 'The body was cut off.')));
    };
    req.once('error', gone);
    req.once('close', gone);
  });
}

function tooLarge(req: IncomingMessage): never {
  let rest = 0;
  req.on('data', (chunk: Buffer) => {
    rest += chunk.length;
    if (rest > DRAIN_LIMIT) req.destroy();
  });
  return refuse(413, `The body must have at most ${String(BODY_LIMIT)} bytes.`);
}
