import express from 'express';
import type { Express } from 'express';
import { serve } from './served.js';
import type { Answer, Served } from './served.js';
import { runSnippet, urlOf } from './snippet.js';
import type { Snippet } from './snippet.js';

/** A reader's application, on which a test puts the recipes of a page. Tests call `begin` and `end` around each. */
export class Reader {
  app: Express = express();
  #served: Served | undefined;
  readonly #running: Snippet[] = [];

  begin(): void {
    // Each test begins with nothing counted in the process's own store.
    Reflect.deleteProperty(globalThis, Symbol.for('limitkeeper.memory-store.v1'));
    this.app = express();
  }

  async end(): Promise<void> {
    await this.#served?.close();
    for (const snippet of this.#running.splice(0)) await snippet.close();
    this.#served = undefined;
    jest.restoreAllMocks();
  }

  /** Runs a snippet, with the reader's own parts as given. */
  async run(code: string, own: Record<string, unknown> = {}): Promise<Snippet> {
    const snippet = await runSnippet(code, { app: this.app, ...own });
    this.#running.push(snippet);
    return snippet;
  }

  /** Runs one that starts a server of its own. Answers the server's URL. */
  async start(code: string, own: Record<string, unknown> = {}): Promise<string> {
    const { servers } = await this.run(code, own);
    return urlOf(servers.at(-1));
  }

  /** Runs one that puts something on the application, behind which everything is answered `{ passed: true }`. */
  async recipe(code: string, own: Record<string, unknown> = {}): Promise<void> {
    await this.run(code, own);
    this.app.use((_req, res) => {
      res.json({ passed: true });
    });
    await this.serve();
  }

  async serve(): Promise<void> {
    this.#served = await serve(this.app);
  }

  get url(): string {
    return this.#served!.url;
  }

  ask(...args: Parameters<Served['ask']>): Promise<Answer> {
    return this.#served!.ask(...args);
  }
}

/** The statuses of one request after the other. */
export async function statuses(
  count: number,
  request: (i: number) => Promise<{ status: number }>,
): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i += 1) all.push((await request(i)).status);
  return all;
}

/** `count` times the same. */
export const times = (count: number, status: number): number[] => new Array<number>(count).fill(status);
