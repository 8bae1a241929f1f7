import { STATUS_CODES } from 'node:http';

/** What a route answers: data, written out by the thin router. */
export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or a text together with its content type in `headers`. */
  readonly body: unknown;
}

/** Thrown by whatever finds that a request cannot be served; the router answers with it and nothing else runs. */
export class Refusal extends Error {
  readonly reply: Reply;

  constructor(reply: Reply) {
    super(`refused with status ${String(reply.status)}`);
    this.reply = reply;
  }
}

export function ok(body: unknown): Reply {
  return { status: 200, body };
}

/**
 * An RFC 9457 problem of type `about:blank`: the status says all, `detail` what to do.
 *
 * @param more further members, e.g. the fields that were wrong.
 */
export function problem(
  status: number,
  detail: string,
  more: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return {
    status,
    headers: { 'Content-Type': 'application/problem+json', ...headers },
    body: { title: STATUS_CODES[status] ?? 'Error', status, detail, ...more },
  };
}

export function refuse(...args: Parameters<typeof problem>): never {
  throw new Refusal(problem(...args));
}
