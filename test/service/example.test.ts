import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { call } from '../support/http.js';

jest.setTimeout(60_000);

it('the example server does what its first lines say', async () => {
  const adminKey = 'the admin of the rates';
  const server = spawn(
    process.execPath,
    ['--import', 'tsx', '--import', './scripts/lua-loader.js', 'examples/service/server.ts'],
    {
      cwd: join(__dirname, '../..'),
      env: { PATH: process.env['PATH'], PORT: '0', RATE_ADMIN_KEY: adminKey },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  try {
    const [line] = (await once(createInterface(server.stdout), 'line')) as [string];
    const url = `http://127.0.0.1:${/port: (\d+)/.exec(line)![1]!}/rate`;
    const check = () =>
      call(`${url}/check`, { method: 'POST', headers: { 'X-User-Id': '42' }, body: { endpoint: '/search' } });
    for (let i = 0; i < 10; i += 1) expect((await check()).status).toBe(200);
    expect((await check()).status).toBe(429);
    const status = await call(`${url}/status?endpoint=/search`, { headers: { 'X-User-Id': '42' } });
    expect(JSON.parse(status.body)).toMatchObject({ used: 10, remaining: 0 });
    expect((await call(`${url}/reset/42`, { method: 'DELETE' })).status).toBe(403);
    const reset = await call(`${url}/reset/42`, { method: 'DELETE', headers: { 'X-Admin-Key': adminKey } });
    expect(JSON.parse(reset.body)).toEqual({ userId: '42', reset: 1 });
    expect((await check()).status).toBe(200);
    server.kill('SIGTERM');
    // It ends by itself, with nothing left that holds it open.
    expect(await once(server, 'exit')).toEqual([0, null]);
  } finally {
    server.kill('SIGKILL');
  }
});
