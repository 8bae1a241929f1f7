import { runFixture } from '../support/warnings.js';
import { CLIENTS } from '../support/redis/clients.js';
import { startRedis } from '../support/redis/server.js';
import type { RedisServer } from '../support/redis/server.js';

// A process of its own that translates TypeScript takes its time on a busy machine.
jest.setTimeout(90_000);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis({ password: 'right-one' });
});
afterAll(() => redis.stop());

const LUA = ['--import', './scripts/lua-loader.js'];

const run = (kind: string, password: string, env: NodeJS.ProcessEnv = {}) =>
  runFixture('newcomer.ts', {
    nodeArgs: LUA,
    args: [kind, `redis://:${password}@127.0.0.1:${String(redis.port)}`],
    env,
  });

describe.each(CLIENTS)('L1 a newcomer with $name', ({ name }) => {
  it('and a wrong password gets exactly one warning, which says what to mend', async () => {
    const { stdout, stderr } = await run(name, 'wrong-one');
    expect(stdout).toBe('200 401\n');
    const lines = stderr
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('(Use `node --trace-warnings'));
    expect(lines).toEqual([
      expect.stringMatching(
        /^\(node:\d+\) \[LIMITKEEPER_STORE_AWAY\] LimitkeeperWarning: .*: WRONGPASS invalid username-password pair/,
      ),
    ]);
    expect(lines[0]).toContain(
      "requests pass uncounted (failMode 'open': api.ip); each process counts for itself (failMode 'local': login.",
    );
    expect(lines[0]).toMatch(/ See https:\/\/\S+\/docs\/warnings\.md#limitkeeper_store_away$/);
    expect(stderr + stdout).not.toContain('wrong-one');
  });
});

it('and the right password gets none', async () => {
  const { stdout, stderr } = await run('ioredis 5', 'right-one');
  expect([stdout, stderr]).toEqual(['200 401\n', '']);
});

it('and a reason to be silent gets none', async () => {
  const { stderr } = await run('ioredis 5', 'wrong-one', {
    LIMITKEEPER_NO_WARNINGS: 'LIMITKEEPER_STORE_AWAY',
  });
  expect(stderr).toBe('');
});
