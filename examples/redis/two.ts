// Starts the application twice behind one Redis and asks both in turn: ten requests pass, whichever process they meet.
//   npx --yes tsx node_modules/limitkeeper/examples/redis/two.ts
// (in a checkout: npm run example examples/redis/two.ts). REDIS_URL names another Redis than that of this machine.
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

const REQUESTS = 14;

interface App {
  readonly process: ChildProcess;
  readonly url: string;
}

async function start(): Promise<App> {
  // It is translated as this process is, whose flags it inherits.
  const child = fork(new URL('app.ts', import.meta.url), {
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
