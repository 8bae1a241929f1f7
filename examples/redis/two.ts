// Starts the application twice behind one Redis and asks both in turn: ten requests pass, whichever process they meet.
//   REDIS_URL=redis://127.0.0.1:6379 npx tsx --import ./scripts/lua-loader.js examples/redis/two.ts
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const REQUESTS = 14;

interface App {
  readonly process: ChildProcess;
  readonly url: string;
}

async function start(): Promise<App> {
  const child = fork(join(import.meta.dirname, 'app.ts'), {
    execArgv: ['--import', 'tsx', '--import', './scripts/lua-loader.js'],
    cwd: join(import.meta.dirname, '..', '..'),
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [port] = (await once(child, 'message')) as [number];
  return { process: child, url: `http://127.0.0.1:${String(port)}/` };
}

async function stop({ process: child }: App): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

const apps = await Promise.all([start(), start()]);
let passed = 0;
for (let i = 0; i < REQUESTS; i++) {
  const response = await fetch(apps[i % apps.length]!.url, { headers: { connection: 'close' } });
  if (response.ok) passed++;
  const left = response.headers.get('ratelimit') ?? '';
  console.log(`process ${String((i % apps.length) + 1)}: ${String(response.status)}  ${left}`);
}
console.log(`${String(passed)} of ${String(REQUESTS)} passed.`);
await Promise.all(apps.map(stop));
