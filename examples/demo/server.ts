// npm run demo: the demo application on PORT (3000), with what to try, and one line for each refusal.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createDemo } from './app.js';
import { commands } from './commands.js';

/** For a connection that is being answered when the server is told to stop. */
const PATIENCE_MS = 3000;

function readPort(text = '3000'): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  return giveUp(`PORT must be a number from 0 to 65535, got "${text}". Try: PORT=3001 npm run demo`);
}

function giveUp(message: string): never {
  console.error(message);
  process.exit(1);
}

const port = readPort(process.env['PORT']);
const demo = createDemo(line => {
  console.log(line);
});
const server = createServer(demo.app);

server.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EADDRINUSE') {
    giveUp(
      `Port ${String(port)} is taken by another program. Try another one: PORT=${String(port + 1)} npm run demo`,
    );
  }
  if (error.code === 'EACCES') {
    giveUp(`This user may not listen on port ${String(port)}. Try: PORT=3000 npm run demo`);
  }
  throw error;
});

server.listen(port, () => {
  const base = `http://localhost:${String((server.address() as AddressInfo).port)}`;
  console.log(`limitkeeper demo on ${base} (Ctrl+C ends it)`);
  console.log(commands(base));
  console.log('Refusals:');
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // Once: whoever is in a hurry asks twice.
  process.once(signal, () => {
    server.close(() => {
      void demo.close().then(() => {
        console.log('stopped');
      });
    });
    server.closeIdleConnections();
    setTimeout(() => {
      server.closeAllConnections();
    }, PATIENCE_MS).unref();
  });
}
