/** What the routes answer, as far as the page reads it. */

export interface Totals {
  readonly allowed: number;
  readonly refused: number;
  readonly shadowRefused: number;
  readonly blocked: number;
  readonly storeErrors: number;
}

export interface Recent {
  readonly allowed: readonly number[];
  readonly refused: readonly number[];
  /** Of one scope: what a rule in shadow mode would have refused. Nobody was. */
  readonly shadowRefused?: readonly number[];
}

export interface Scope {
  readonly scope: string;
  readonly mode: 'enforce' | 'shadow' | 'off';
  readonly algorithm: string;
  readonly limit: number | null;
  readonly windowSec: number | null;
  readonly capacity: number | null;
  readonly blockSec: readonly number[] | null;
  readonly failMode: 'open' | 'closed' | 'local';
  readonly degraded: 'open' | 'closed' | 'local' | null;
  readonly totals: Totals;
  readonly recent: Recent;
}

export interface Overview {
  readonly at: number;
  readonly instance: string;
  readonly since: number;
  readonly access: 'read' | 'all';
  readonly stepSec: number;
  /** Requests, each counted once however many rules it met. */
  readonly requests: { readonly recent: Recent };
  readonly scopes: readonly Scope[];
}

export interface Block {
  readonly since: number;
  readonly until: number | null;
  readonly manual: boolean;
}

/** What would become of a request, were the block lifted now. `null` where nobody knows. */
export type WithoutBlock = { readonly allowed: boolean; readonly retryAfterMs: number | null } | null;

export interface BlockEntry extends Block {
  readonly subjectHash: string;
  readonly scope: string;
  readonly mode: Scope['mode'];
  readonly withoutBlock: WithoutBlock;
}

export interface BlockList {
  readonly at: number;
  readonly blocks: readonly BlockEntry[];
  readonly total: number;
  /** Blocks of the list before this page. */
  readonly before: number;
  /** `false`: there are more than were read. */
  readonly complete: boolean;
  readonly cursor?: string;
  readonly counts: readonly {
    readonly scope: string;
    readonly mode: Scope['mode'];
    readonly blocked: number;
  }[];
  readonly unlisted: readonly string[];
}

export interface Standing {
  readonly subjectHash: string;
  readonly scope: string;
  readonly mode: Scope['mode'];
  readonly reading: {
    readonly allowed: boolean;
    readonly reason: string;
    readonly limit: number;
    readonly remaining: number;
    readonly retryAfterMs: number | null;
  } | null;
  readonly block: Block | null;
  readonly withoutBlock: WithoutBlock;
  readonly strikes: number;
  readonly counters: readonly {
    readonly windowSec: number;
    readonly used: number | null;
    readonly held: number;
  }[];
}

export interface Status {
  readonly at: number;
  readonly readings: readonly Standing[];
  readonly found: number;
  readonly more: boolean;
  readonly unlisted: readonly string[];
}

export type SubjectInput =
  { readonly parts: readonly string[] } | { readonly hash: string } | { readonly part: string };

/** An answer that is none of those: `status` 0 where none came at all. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

/** The page may be reached with or without a slash at its end; its routes lie below it in both cases. */
const BASE = location.pathname.replace(/\/?$/, '/');

interface Init {
  readonly method?: 'POST';
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Calls the routes with a key that lives in this object and nowhere else. */
export class Api {
  readonly #headers: Readonly<Record<string, string>>;

  /** @param key `undefined` where the browser's own cookies open the routes. */
  constructor(key: string | undefined) {
    this.#headers = key === undefined ? {} : { 'X-Admin-Key': key };
  }

  async get<T>(path: string): Promise<T> {
    return read<T>(await this.#fetch(path, {}));
  }

  async post<T>(path: string, body: object): Promise<T> {
    const response = await this.#fetch(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json' },
    });
    return read<T>(response);
  }

  /** The live stream, as it arrives. */
  async stream(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#fetch(path, { signal });
    if (!response.ok || response.body === null) await read(response);
    return response.body as ReadableStream<Uint8Array>;
  }

  async #fetch(path: string, init: Init): Promise<Response> {
    try {
      return await fetch(BASE + path, {
        cache: 'no-store',
        credentials: 'same-origin',
        redirect: 'error',
        referrerPolicy: 'no-referrer',
        ...init,
        headers: { ...this.#headers, ...init.headers },
      });
    } catch {
      throw new ApiError(0, 'The server does not answer.');
    }
  }
}

async function read<T>(response: Response): Promise<T> {
  let body: unknown;
  try {
    body = await response.json();
  } catch {
    throw new ApiError(
      response.ok ? 0 : response.status,
      `The server answered with status ${String(response.status)}.`,
    );
  }
  if (response.ok) return body as T;
  const detail = (body as { detail?: unknown } | null)?.detail;
  throw new ApiError(
    response.status,
    typeof detail === 'string' ? detail : `The server answered with status ${String(response.status)}.`,
  );
}
