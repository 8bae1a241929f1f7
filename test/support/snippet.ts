import { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { transformSync } from '@swc/core';

export interface Snippet {
  /** Servers that it started, each on a free port in the place of the one that it asked for. */
  readonly servers: readonly Server[];
  /** What it exports. */
  readonly exports: Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

/**
 * Runs a snippet of the documentation as it stands, in this process: `import` gets what this test would, and names that
 * the snippet does not declare come from `provided`.
 */
export async function runSnippet(code: string, provided: Record<string, unknown> = {}): Promise<Snippet> {
  const { code: commonJs } = transformSync(code, {
    jsc: {
      target: 'es2022',
      // TypeScript for its decorators: of types the snippets have none.
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true },
    },
    module: { type: 'commonjs' },
    isModule: true,
  });
  const servers: Server[] = [];
  const exports: Record<string, unknown> = {};
  const listen = Server.prototype.listen;
  const spy = jest.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server, ...args) {
    servers.push(this);
    const then = (args as unknown[]).filter(arg => typeof arg === 'function');
    return Reflect.apply(listen, this, [0, '127.0.0.1', ...then]) as Server;
  });
  try {
    const names = Object.keys(provided);
    // What a program starts without waiting for it, as `void bootstrap();` does, has started when this is over.
    const waiting = commonJs.replace(/^void (\w+\(\));$/m, 'await $1;');
    // A block, so that a snippet may declare an `app` of its own.
    const body = `return (async () => { ${waiting}\n })();`;
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- running the documentation is the point
    const run = new Function('require', 'exports', ...names, body) as (...args: unknown[]) => Promise<void>;
    await run(require, exports, ...names.map(name => provided[name]));
  } finally {
    spy.mockRestore();
  }
  await Promise.all(
    servers.map(async server => {
      if (!server.listening) await new Promise(resolve => server.once('listening', resolve));
    }),
  );
  return {
    servers,
    exports,
    close: async () => {
      await Promise.all(
        servers.map(server => {
          server.closeAllConnections();
          return new Promise(resolve => server.close(resolve));
        }),
      );
    },
  };
}

export function urlOf(server: Server | undefined): string {
  return `http://127.0.0.1:${String((server?.address() as AddressInfo).port)}`;
}
