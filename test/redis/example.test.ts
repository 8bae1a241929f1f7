import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startRedis } from '../support/redis/server.js';

jest.setTimeout(120_000);

it('the example: two processes, ten requests pass in all', async () => {
  const redis = await startRedis();
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', 'tsx', '--import', './scripts/lua-loader.js', 'examples/redis/two.ts'],
      {
        cwd: join(import.meta.dirname, '..', '..'),
        env: { PATH: process.env['PATH'], REDIS_URL: redis.url },
      },
    );
    expect(stdout).toContain('10 of 14 passed.');
    expect(stdout.match(/^process [12]: 200/gm)).toHaveLength(10);
  } finally {
    await redis.stop();
  }
});
