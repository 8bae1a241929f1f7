import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { subjectHash } from '../../src/index.js';
import { ADMIN_KEY, asAdmin } from '../support/admin.js';
import { call, pause } from '../support/http.js';
import { type RedisServer, startRedis } from '../support/redis/server.js';

jest.setTimeout(60_000);

/** What deny caches promise, and four times that: the machine of the test has other things to do. */
const OBEYED_MS = 1000 * 4;
const EMAIL = 'a@b.c';

let redis: RedisServer;
const members: ChildProcess[] = [];

beforeAll(async () => {
  redis = await startRedis();
});

afterEach(async () => {
  for (const member of members.splice(0)) {
    if (member.exitCode !== null) continue;
    const ended = once(member, 'exit');
    member.kill('SIGKILL');
    await ended;
  }
  await redis.call('FLUSHALL');
});

afterAll(() => redis.stop());

interface Member {
  login(client: string): Promise<number>;
  admin(path: string, body?: object): Promise<{ readonly status: number; readonly body: AdminBody }>;
}

/** What these tests read of the answers. */
interface AdminBody {
  readonly blocks?: readonly { readonly subjectHash: string; readonly manual: boolean }[];
  readonly cursor?: string;
  readonly readings?: readonly unknown[];
  readonly unblocked?: readonly unknown[];
}

/** A process with a client, a store and a deny cache of its own. */
async function startMember(denyCacheMs = 1000): Promise<Member> {
  const member = fork(
    join(__dirname, '../support/fleet-member-main.ts'),
    [String(redis.port), String(denyCacheMs), ADMIN_KEY],
    {
      execArgv: ['--import', 'tsx', '--import', './scripts/lua-loader.js'],
      cwd: join(__dirname, '../..'),
      // Jest's own settings are not its.
      env: { PATH: process.env['PATH'], NODE_OPTIONS: '' },
    },
  );
  members.push(member);
  const [port] = (await Promise.race([
    once(member, 'message'),
    once(member, 'exit').then(() => {
      throw new Error('The process ended before it listened.');
    }),
  ])) as [number];
  const url = `http://127.0.0.1:${String(port)}`;
  return {
    login: async client =>
      (await call(`${url}/login`, { headers: { 'X-Email': EMAIL, 'X-Client': client } })).status,
    admin: async (path, body) => {
      const reply = await call(`${url}/admin${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: asAdmin,
        ...(body === undefined ? {} : { body }),
      });
      return { status: reply.status, body: JSON.parse(reply.body) };
    },
  };
}

const loginTimes = async (times: number, login: () => Promise<number>): Promise<number[]> => {
  const statuses: number[] = [];
  for (let i = 0; i < times; i += 1) statuses.push(await login());
  return statuses;
};

/** How long somebody who knocks all the time stays shut out, at most `most` ms. */
async function shutOutFor(most: number, login: () => Promise<number>): Promise<number> {
  const start = performance.now();
  while (performance.now() - start < most) {
    if ((await login()) === 200) return performance.now() - start;
    await pause(20);
  }
  return Infinity;
}

describe('processes on one Redis', () => {
  it.each(['unblock', 'reset'])(
    'obey the %s of another within a second, deny cache included',
    async action => {
      const [office, shop, stubborn] = await Promise.all([startMember(), startMember(), startMember(60_000)]);
      expect(await loginTimes(4, () => shop.login('1'))).toEqual([200, 200, 429, 429]);
      expect(await stubborn.login('1')).toBe(429);
      await office.admin(`/${action}`, { subject: { part: EMAIL } });
      if (action === 'unblock') {
        // Free, though the counter is still used up: that one is the rule's own verdict, and starts a block of its own.
        await office.admin('/reset', { subject: { parts: [EMAIL, '1'] } });
      }
      expect(await shutOutFor(OBEYED_MS, () => shop.login('1'))).toBeLessThan(OBEYED_MS);
      // That a deny cache was at work at all: one told to be up to a minute stale still refuses.
      expect(await stubborn.login('1')).toBe(429);
    },
  );

  it('obey a block of another at once, and see the same list', async () => {
    const [office, shop] = await Promise.all([startMember(), startMember()]);
    expect(await shop.login('7')).toBe(200);
    await office.admin('/block', { subject: { parts: [EMAIL, '7'] }, scope: 'login.pair', blockSec: 600 });
    expect(await shop.login('7')).toBe(429);
    await loginTimes(3, () => shop.login('8'));
    const { body } = await office.admin('/blocks');
    const entries = body.blocks ?? [];
    expect(new Map(entries.map(({ subjectHash: hash, manual }) => [hash, manual]))).toEqual(
      new Map([
        [subjectHash([EMAIL, '7']), true],
        [subjectHash([EMAIL, '8']), false],
      ]),
    );
    const found = await shop.admin('/status', { subject: { part: EMAIL } });
    expect(found.body.readings).toHaveLength(2);
    const freed = await shop.admin('/unblock', { subject: { part: EMAIL } });
    expect(freed.body.unblocked).toHaveLength(2);
    expect((await office.admin('/blocks')).body.blocks).toEqual([]);
  });

  it('list blocks newest first, as a store in memory does, with a true count', async () => {
    const office = await startMember();
    const started: string[] = [];
    for (let i = 0; i < 12; i += 1) {
      const parts = [EMAIL, String(i)];
      await office.admin('/block', { subject: { parts }, scope: 'login.pair', blockSec: 600 });
      started.push(subjectHash(parts));
      await pause(2);
    }
    const listed: string[] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const { body } = await office.admin(`/blocks?count=5${cursor === '' ? '' : `&cursor=${cursor}`}`);
      expect(body).toMatchObject({ total: 12, complete: true });
      listed.push(...(body.blocks ?? []).map(({ subjectHash: hash }) => hash));
      cursor = body.cursor;
    }
    expect(listed).toEqual([...started].reverse());
  });

  it('answer 503 while Redis is away, and work again when it is back', async () => {
    const office = await startMember();
    const subject = { parts: [EMAIL, '9'] };
    expect((await office.admin('/status', { subject })).status).toBe(200);
    redis.freeze();
    try {
      const frozen = await Promise.all([
        office.admin('/status', { subject }),
        office.admin('/reset', { subject }),
        office.admin('/blocks'),
      ]);
      expect(frozen.map(({ status }) => status)).toEqual([503, 503, 503]);
    } finally {
      redis.thaw();
    }
    // The breaker asks again after a second.
    const end = performance.now() + 20_000;
    let status = 0;
    while (status !== 200 && performance.now() < end) {
      ({ status } = await office.admin('/status', { subject }));
      await pause(100);
    }
    expect(status).toBe(200);
  });
});
