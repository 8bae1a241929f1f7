import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { subjectHash } from 'limitkeeper';
import { endPrograms, runScript } from '../support/demo.js';
import type { Program } from '../support/demo.js';

jest.setTimeout(60_000);

afterAll(endPrograms);

async function startDemo(): Promise<{ demo: Program; base: string }> {
  const demo = runScript('demo', { PORT: '0' });
  const [, base] = await demo.says(/limitkeeper demo on (http:\/\/localhost:\d+)/);
  await demo.says('Refusals:');
  return { demo, base: base! };
}

/** One of the curl lines that the demo prints, as a request. */
function parseCurl(line: string): { url: string; init: RequestInit } {
  const headers = [...line.matchAll(/-H '([^:]+): ([^']+)'/g)].map(
    ([, name, value]) => [name!, value!] as [string, string],
  );
  const [, body] = /-d '([^']+)'/.exec(line) ?? [];
  const [url] = /http:\S+/.exec(line)!;
  return { url, init: { headers, ...(body === undefined ? {} : { method: 'POST', body }) } };
}

describe('npm run demo', () => {
  let demo: Program;
  let base: string;

  beforeAll(async () => {
    ({ demo, base } = await startDemo());
  });

  test('every command that it prints is answered', async () => {
    const lines = demo
      .stdout()
      .split('\n')
      .filter(line => /^ {2}curl /.test(line));
    const seen: unknown[] = [];
    for (const line of lines) {
      const { url, init } = parseCurl(line);
      const response = await fetch(url, init);
      seen.push([new URL(url).pathname, response.status, await response.json()]);
    }
    expect(seen).toEqual([
      ['/api/hello', 200, { hello: 'stranger' }],
      ['/login', 401, { error: 'invalid_credentials' }],
      ['/api/report', 200, { report: 'All is well.', remaining: 4 }],
      ['/api/report', 200, { report: 'All is well.', remaining: 19 }],
      ['/api/report', 200, { report: 'All is well.', remaining: 99 }],
      ['/api/report', 200, { report: 'All is well.' }],
      // 5 words asked, 7 answered; 500 more were reserved.
      [
        '/api/ask',
        200,
        { answer: 'You asked: Why is the sky blue?', reserved: 505, cost: 12, remaining: 49_988 },
      ],
    ]);
  });

  test('plans differ, and an unlimited one meets no limit', async () => {
    const statuses = async (token: string, count: number): Promise<number[]> => {
      const seen: number[] = [];
      for (let i = 0; i < count; i += 1) {
        const { status } = await fetch(`${base}/api/report`, {
          headers: { authorization: `Bearer ${token}` },
        });
        seen.push(status);
      }
      return seen;
    };
    // One of the five was used by the command above.
    expect(await statuses('demo-free', 6)).toEqual([200, 200, 200, 200, 429, 429]);
    expect(await statuses('demo-unlimited', 25)).toEqual(new Array(25).fill(200));
  });

  test('a wrong token, no token, no prompt and no JSON are told', async () => {
    const ask = async (headers: Record<string, string>, body = '{}'): Promise<number> => {
      const { status } = await fetch(`${base}/api/ask`, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', ...headers },
      });
      return status;
    };
    const pro = { authorization: 'Bearer demo-pro' };
    expect([
      await ask({ authorization: 'Bearer unknown' }),
      await ask({}),
      await ask(pro),
      await ask(pro, '{'),
      (await fetch(`${base}/nowhere`)).status,
    ]).toEqual([401, 401, 422, 400, 404]);
  });

  test('one line tells of each refusal, with a hash for a name', async () => {
    const email = 'somebody@example.com';
    const login = (): Promise<Response> =>
      fetch(`${base}/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email, password: 'wrong' }),
      });
    for (let i = 0; i < 7; i += 1) await login();
    await demo.says(/(?:refused {2}login[^\n]*\n){2}/);

    const lines = demo.stdout().split('Refusals:\n')[1]!.trimEnd().split('\n');
    const frida = subjectHash('Frida').slice(0, 12);
    const [caller] = ['127.0.0.1', '::1']
      .map(address => subjectHash([email, address]).slice(0, 12))
      .filter(hash => demo.stdout().includes(hash));
    expect(lines).toEqual([
      expect.stringMatching(`^refused  report.account  subject ${frida}…  limit, for \\d+ s$`),
      expect.stringMatching(`^refused  report.account  subject ${frida}…  limit, for \\d+ s$`),
      expect.stringMatching(
        `^refused  login.password.email_ip  subject ${caller!}…  blocked, for (?:8\\d\\d|900) s$`,
      ),
      expect.stringMatching(
        `^refused  login.password.email_ip  subject ${caller!}…  blocked, for (?:8\\d\\d|900) s$`,
      ),
    ]);
    expect(demo.stdout()).not.toContain(email);
    expect(demo.stderr()).toBe('');
  });

  test('npm run smoke finds fault with a server that was used before', async () => {
    const smoke = runScript('smoke', { DEMO_URL: base });
    expect(await smoke.ended).toBe(1);
    expect(smoke.stdout()).toMatch(
      /^FAIL {2}API requests without a bearer that passed: \d+ \(expected: 120\)$/m,
    );
    expect(smoke.stdout()).toContain('restart it');
  });

  test('SIGINT ends it in good order', async () => {
    demo.child.kill('SIGINT');
    expect(await demo.ended).toBe(0);
    expect(demo.stdout()).toMatch(/\nstopped\n$/);
  });
});

test('SIGTERM ends the demo in good order', async () => {
  const { demo } = await startDemo();
  demo.child.kill('SIGTERM');
  expect(await demo.ended).toBe(0);
  expect(demo.stdout()).toMatch(/\nstopped\n$/);
});

describe('the demo says what to do', () => {
  test('where the port is taken', async () => {
    const other = createServer();
    await new Promise<void>(resolve => other.listen(0, resolve));
    const { port } = other.address() as AddressInfo;
    try {
      const demo = runScript('demo', { PORT: String(port) });
      expect(await demo.ended).toBe(1);
      expect(demo.stderr()).toBe(
        `Port ${String(port)} is taken by another program. Try another one: PORT=${String(port + 1)} npm run demo\n`,
      );
    } finally {
      other.close();
    }
  });

  test.each(['http', '-1', '70000', '3000.5'])('where PORT is %s', async port => {
    const demo = runScript('demo', { PORT: port });
    expect(await demo.ended).toBe(1);
    expect(demo.stderr()).toBe(
      `PORT must be a number from 0 to 65535, got "${port}". Try: PORT=3001 npm run demo\n`,
    );
  });
});

test('npm run smoke: the limits of the presets, on a server of its own', async () => {
  const smoke = runScript('smoke');
  expect([await smoke.ended, smoke.stderr()]).toEqual([0, '']);
  expect(smoke.stdout()).toMatchInlineSnapshot(`
"ok    API requests without a bearer that passed: 120
ok    the next one: 429 {"error":"rate_limit_exceeded"}
ok    its Retry-After: 120 s
ok    wrong passwords: 401 401 401 401 401 429
ok    Retry-After of the fifth: 900 s
ok    the sixth: {"error":"rate_limit_exceeded"}
ok    blocked for 15 minutes: yes
ok    told to people: Too many login attempts. Please wait and try again.
The demo limits what it says.
"
`);
});
