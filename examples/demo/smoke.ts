// npm run smoke: does the demo limit what it says? Starts the demo on a free port, or takes the one at DEMO_URL (which
// must be fresh: what was counted before is counted here). Prints what it saw; exits 1 where that is not what it should be.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createDemo } from './app.js';

let mismatches = 0;

function check(what: string, expected: string, seen: string): void {
  const right = expected === seen;
  if (!right) mismatches += 1;
  console.log(`${right ? 'ok  ' : 'FAIL'}  ${what}: ${seen}${right ? '' : ` (expected: ${expected})`}`);
}

interface Seen {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
}

async function ask(url: string, init: RequestInit = {}): Promise<Seen> {
  const response = await fetch(url, init);
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    text: await response.text(),
  };
}

/** More than 120 requests a minute without a bearer. */
async function smokeApi(base: string): Promise<void> {
  let passed = 0;
  let last = await ask(`${base}/api/hello`);
  while (last.status === 200 && passed < 130) {
    passed += 1;
    last = await ask(`${base}/api/hello`);
  }
  check('API requests without a bearer that passed', '120', String(passed));
  check('the next one', '429 {"error":"rate_limit_exceeded"}', `${String(last.status)} ${last.text}`);
  check('its Retry-After', '120 s', `${last.retryAfter ?? '-'} s`);
}

/** Wrong passwords for one e-mail and address. */
async function smokeLogin(base: string): Promise<void> {
  // Nobody's: whether an account exists makes no difference, and a second run starts afresh.
  const email = `${randomUUID()}@example.com`;
  const attempt = (accept: string): Promise<Seen> =>
    ask(`${base}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept },
      body: JSON.stringify({ email, password: 'wrong' }),
    });
  const seen: Seen[] = [];
  for (let i = 0; i < 6; i += 1) seen.push(await attempt('application/json'));
  const [fifth, sixth] = [seen[4], seen[5]];
  check('wrong passwords', '401 401 401 401 401 429', seen.map(({ status }) => status).join(' '));
  check('Retry-After of the fifth', '900 s', `${fifth?.retryAfter ?? '-'} s`);
  check('the sixth', '{"error":"rate_limit_exceeded"}', sixth?.text ?? '');
  // A moment has passed since the block began.
  const left = Number(sixth?.retryAfter ?? NaN);
  check('blocked for 15 minutes', 'yes', left > 890 && left <= 900 ? 'yes' : `${String(left)} s`);
  const problem = JSON.parse((await attempt('application/problem+json')).text) as { detail?: string };
  check('told to people', 'Too many login attempts. Please wait and try again.', problem.detail ?? '-');
}

async function smoke(base: string): Promise<void> {
  await smokeApi(base);
  await smokeLogin(base);
}

async function smokeOwnServer(): Promise<void> {
  const demo = createDemo(() => undefined);
  const server = createServer(demo.app);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  try {
    await smoke(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
  } finally {
    server.close();
    server.closeAllConnections();
    await demo.close();
  }
}

const url = process.env['DEMO_URL'];
await (url === undefined || url === '' ? smokeOwnServer() : smoke(url.replace(/\/+$/, '')));
console.log(mismatches === 0 ? 'The demo limits what it says.' : `${String(mismatches)} mismatches.`);
if (mismatches > 0) {
  if (url !== undefined)
    console.log('Was this server used before? Its counters go on: restart it and try again.');
  process.exitCode = 1;
}
