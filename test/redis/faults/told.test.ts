import { Redis as UpstashRedis } from '@upstash/redis';
import { createLimiter, isLimitkeeperError } from '../../../src/index.js';
import { RedisStore } from '../../../src/stores/redis/index.js';
import { CLIENTS, clientKind, type OpenClient } from '../../support/redis/clients.js';
import { freePort } from '../../support/redis/processes.js';
import { until } from '../../support/redis/server.js';
import { stage } from '../../support/redis/stage.js';
import { upstashEndpoint } from '../../support/redis/upstash.js';

jest.setTimeout(60_000);
const { onEnd, server } = stage();

const ENVIRONMENT = { ...process.env };
let warnings: string[];

beforeEach(() => {
  delete process.env['LIMITKEEPER_NO_WARNINGS'];
  warnings = [];
  jest.spyOn(process, 'emitWarning').mockImplementation(((text: string, options: { code: string }) => {
    if (options.code === 'LIMITKEEPER_STORE_AWAY') warnings.push(text);
  }) as never);
});

afterEach(() => {
  jest.restoreAllMocks();
  process.env = { ...ENVIRONMENT };
});

const asText = (cause: unknown): string =>
  typeof cause === 'object' && cause !== null && 'message' in cause ? String(cause.message) : 'none';

/** Decides until what is expected was told as a cause; answers all that was. */
async function causes(opened: OpenClient, expected: RegExp): Promise<string[]> {
  onEnd(opened.close);
  const store = new RedisStore({ client: opened.client });
  const seen = new Set<string>();
  const limiter = createLimiter({ scope: 'api.ip', limit: 1_000, windowSec: 60, store });
  limiter.on('store-error', ({ error }) => {
    expect(isLimitkeeperError(error)).toBe(true);
    seen.add(asText(error.cause));
  });
  await until(`${String(expected)} is told, not ${[...seen].join(', ')}`, async () => {
    expect(await limiter.consume('alice')).toMatchObject({ allowed: true });
    return [...seen].some(text => expected.test(text));
  });
  await store.close();
  return [...seen];
}

const expectWarning = (said: RegExp): void => {
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(said);
  expect(warnings[0]).toContain("requests pass uncounted (failMode 'open': api.ip).");
  expect(warnings[0]).not.toMatch(/not the password/);
};

const PASSWORD = 'not the password';
const HOST = 'no-such-host.invalid';

describe.each(CLIENTS)('L1 $name', kind => {
  it.each([
    ['a wrong password', PASSWORD, /^WRONGPASS/],
    ['no password', undefined, /^NOAUTH/],
  ])('%s is told, and warned of once', async (_what, password, expected) => {
    const { port } = await server({ password: 'right' });
    await causes(kind.single({ port, ...(password === undefined ? {} : { password }) }), expected);
    expectWarning(expected.source === '^NOAUTH' ? /: NOAUTH/ : /: WRONGPASS/);
  });

  it('a Redis that is not running is told', async () => {
    await causes(kind.single({ port: await freePort() }), /ECONNREFUSED/);
    expectWarning(/ECONNREFUSED 127\.0\.0\.1:\d+/);
  });

  it('an unknown host is told', async () => {
    const at = kind.name.startsWith('ioredis') ? { host: HOST } : { socket: { host: HOST, port: 6379 } };
    await causes(kind.single({ port: 6379 }, false, at), /ENOTFOUND/);
    expectWarning(/ENOTFOUND no-such-host\.invalid/);
  });

  it('a user without rights is told', async () => {
    const redis = await server();
    // Enough to connect with, and no more.
    await redis.call('ACL', 'SETUSER', 'default', '-@all', '+info', '+hello', '+client', '+ping', '+acl');
    await causes(kind.single({ port: redis.port }), /^NOPERM/);
    expectWarning(/: NOPERM.*'evalsha'/);
  });

  it('one that is killed under load is told, and that it could not be reached since', async () => {
    const redis = await server();
    const opened = kind.single({ port: redis.port });
    await opened.ready;
    setTimeout(() => void redis.kill(), 300);
    const seen = await causes(opened, /ECONNREFUSED/);
    expect(seen).not.toContain('none');
    expectWarning(/lost|closed|ECONN/i);
  });

  it('one that is frozen is told without a cause', async () => {
    const redis = await server();
    const opened = kind.single({ port: redis.port });
    await opened.ready;
    onEnd(() => {
      redis.thaw();
    });
    setTimeout(() => {
      redis.freeze();
    }, 100);
    await causes(opened, /none/);
    expectWarning(/^The store did not answer within 250 ms \(option storeTimeoutMs\)\. Until/);
  });

  it('a cluster of which no node is there is told, or asks for a password', async () => {
    const none = await freePort();
    // Of ioredis that is all that the client says.
    await causes(
      kind.cluster({ addresses: [{ host: '127.0.0.1', port: none }] }),
      /ECONNREFUSED|Connection is closed/,
    );
    const { port } = await server({ password: 'right' });
    await causes(kind.cluster({ addresses: [{ host: '127.0.0.1', port }] }), /NOAUTH/);
    expect(warnings).toHaveLength(2);
  });

  it('a sentinel that is not there is told, or asks for a password', async () => {
    await causes(
      kind.sentinel({ host: '127.0.0.1', port: await freePort(), name: 'limits' }),
      /ECONNREFUSED|Connection is closed/,
    );
    expect(warnings).toHaveLength(1);
  });

  it('what was wrong is forgotten when it is well again', async () => {
    const redis = await server();
    const opened = kind.single({ port: redis.port });
    onEnd(opened.close);
    await opened.ready;
    const store = new RedisStore({ client: opened.client });
    await redis.kill();
    await until('the client has noticed', () => store.lastError !== undefined);
    await redis.restart();
    await until('the client is back', () => store.lastError === undefined);
    await store.close();
  });
});

describe('L1 @upstash/redis', () => {
  const upstash = (url: string, token: string): OpenClient => ({
    client: new UpstashRedis({ url, token, enableTelemetry: false, retry: false }),
    ready: Promise.resolve(),
    close: () => undefined,
  });

  it('a wrong token is told', async () => {
    const endpoint = await upstashEndpoint((await server()).port);
    onEnd(() => endpoint.close());
    await causes(upstash(endpoint.url, PASSWORD), /Unauthorized/);
    expectWarning(/: Unauthorized/);
  });

  it('an endpoint that is not there is told', async () => {
    await causes(upstash(`http://127.0.0.1:${String(await freePort())}`, 'x'), /fetch failed/);
    expectWarning(/fetch failed: connect ECONNREFUSED/);
  });
});

it('a client that its user closed is told, and no lost connection', async () => {
  const { port } = await server();
  const opened = clientKind('ioredis 5').single({ port });
  await opened.ready;
  const store = new RedisStore({ client: opened.client });
  opened.close();
  await until('it is closed', () => (opened.client as { status: string }).status === 'end');
  expect(store.lastError).toBeUndefined();
  await store.close();
});
