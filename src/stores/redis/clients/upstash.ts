import type { PortState, RedisPort } from '../port.js';

/** What is used of an @upstash/redis client: its HTTP client, below the part that pipelines and parses by guessing. */
export interface UpstashClient {
  readonly client: UpstashHttp;
}

export interface UpstashHttp {
  readonly retry: { readonly attempts: number };
  request(request: { readonly body: readonly string[]; readonly signal?: AbortSignal }): Promise<{
    readonly result?: unknown;
    readonly error?: string;
  }>;
}

/** Upstash speaks HTTP: there is no connection that could be ready or lost. */
export class UpstashPort implements RedisPort {
  readonly topology = 'single';
  readonly keyPrefix = '';
  readonly #http: UpstashHttp;

  constructor({ client }: UpstashClient) {
    // The user's own settings, but for one: a request that failed may have been counted, and must not be repeated.
    this.#http = Object.create(client, {
      retry: { value: { attempts: 0, backoff: () => 0 } },
    }) as UpstashHttp;
  }

  state(): PortState {
    return 'ready';
  }

  awake(): void {
    // Nothing to start.
  }

  onChange(): void {
    // It never changes.
  }

  nodeOf(): string {
    return 'upstash';
  }

  async send(_key: string, args: readonly string[]): Promise<unknown> {
    let reply;
    try {
      reply = await this.#http.request({ body: args });
    } catch (error) {
      throw withoutCommand(error);
    }
    if (reply.error !== undefined) throw new Error(reply.error);
    return reply.result;
  }

  masters(): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]> {
    return Promise.resolve([args => this.send('', args)]);
  }

  close(): void {
    // Nothing was opened.
  }
}

/** The client's messages repeat the whole command, which is long, and none of a log's business. */
function withoutCommand(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const [message = ''] = error.message.split(', command was:');
  return new Error(message, { cause: error.cause });
}
