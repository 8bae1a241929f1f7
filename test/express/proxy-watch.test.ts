import express from 'express';
import express4 from 'express4';
import request from 'supertest';
import { ProxyWatch } from '../../src/express/warnings.js';
import type { WatchedRequest } from '../../src/express/proxy-watch.js';
import { forgetWarnings, watchWarnings } from '../support/warnings.js';

beforeEach(forgetWarnings);
afterEach(() => jest.restoreAllMocks());

const TRUE = 'LIMITKEEPER_TRUST_PROXY_TRUE';
const OFF = 'LIMITKEEPER_TRUST_PROXY_OFF';
const ONE = 'LIMITKEEPER_ONE_PRIVATE_ADDRESS';

/** A request as Express hands it on, without the network: `ip` is what the setting made of it. */
function arrival(ip: string | undefined, headers: WatchedRequest['headers'] = {}, trust: unknown = 1) {
  return { ip, headers, app: appWith(trust) };
}

const apps = new Map<unknown, { get(): unknown }>();
function appWith(trust: unknown): { get(): unknown } {
  const app = apps.get(trust) ?? { get: () => trust };
  apps.set(trust, app);
  return app;
}

describe.each([
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
])('%s', (_name, framework) => {
  /** An app that is watched, and what it warned of while `times` requests came. */
  const warnedOf = async (
    trust: unknown,
    times: number,
    headers: Record<string, string>,
  ): Promise<string[]> => {
    const codes = watchWarnings();
    const watch = new ProxyWatch();
    const app = framework();
    if (trust !== undefined) app.set('trust proxy', trust);
    app.use((req, res) => {
      watch.observe(req);
      res.end();
    });
    const server = app.listen(0, '127.0.0.1');
    const agent = request.agent(server);
    for (let i = 0; i < times; i += 1) await agent.get('/').set(headers);
    server.close();
    return codes;
  };

  test.each<
    [promise: string, trust: unknown, times: number, headers: Record<string, string>, codes: string[]]
  >([
    ['P03 trust proxy true, at the first request', true, 1, {}, [TRUE]],
    ['P03 once, and the header itself is then expected', true, 5, { 'X-Forwarded-For': '1.2.3.4' }, [TRUE]],
    [
      'P01 X-Forwarded-For while trust proxy was never set',
      undefined,
      3,
      { 'X-Forwarded-For': '1.2.3.4' },
      [OFF],
    ],
    ['P01 … or is off', false, 3, { 'X-Forwarded-For': '1.2.3.4' }, [OFF]],
    ['P01 … or is 0 hops', 0, 3, { 'X-Forwarded-For': '1.2.3.4' }, [OFF]],
    ['a hop count', 1, 3, { 'X-Forwarded-For': '1.2.3.4' }, []],
    ['an address list', 'loopback', 3, { 'X-Forwarded-For': '1.2.3.4' }, []],
    ['a function', () => false, 3, { 'X-Forwarded-For': '1.2.3.4' }, []],
    ['no proxy at all', undefined, 3, {}, []],
    ['P02 a hundred requests that another proxy sent', 1, 100, { 'X-Forwarded-For': '10.0.0.5' }, [ONE]],
    ['P02 one fewer is not enough', 1, 99, { 'X-Forwarded-For': '10.0.0.5' }, []],
    [
      'P02 the proxy on this machine is not among the trusted ones',
      '10.0.0.0/8',
      100,
      { 'X-Forwarded-For': '198.51.100.7' },
      [ONE],
    ],
    ['P02 a proxy that only says X-Real-IP', false, 100, { 'X-Real-IP': '198.51.100.7' }, [ONE]],
    ['local development', false, 120, {}, []],
    ['local development behind a local proxy', 1, 120, { 'X-Forwarded-For': '127.0.0.1' }, []],
    ['one client on the internet', 1, 120, { 'X-Forwarded-For': '198.51.100.7' }, []],
  ])('%s', async (_promise, trust, times, headers, codes) => {
    expect(await warnedOf(trust, times, headers)).toEqual(codes);
  });

  test('a mounted app that inherits trust proxy true is warned of', async () => {
    const codes = watchWarnings();
    const watch = new ProxyWatch();
    const inner = framework();
    inner.use((req, res) => {
      watch.observe(req);
      res.end();
    });
    const outer = framework();
    outer.set('trust proxy', true);
    outer.use('/inner', inner);
    await request(outer).get('/inner');
    expect(codes).toEqual([TRUE]);
  });
});

describe('P02 all traffic from one address', () => {
  const watched = (requests: Iterable<WatchedRequest>): string[] => {
    const codes = watchWarnings();
    const watch = new ProxyWatch();
    for (const req of requests) watch.observe(req);
    return codes;
  };
  const times = (n: number, req: WatchedRequest): WatchedRequest[] => new Array<WatchedRequest>(n).fill(req);

  test.each([
    '10.0.0.5',
    '10.255.255.255',
    '172.16.0.1',
    '172.31.255.254',
    '192.168.1.1',
    '100.64.0.1',
    '100.127.255.255',
    '169.254.10.10',
    '::ffff:10.0.0.5',
    '10.0.0.5:4711',
    'fd12:3456::1',
    'fe80::1%eth0',
    undefined,
  ])('%p is a proxy', ip => {
    expect(watched(times(100, arrival(ip)))).toEqual([ONE]);
  });

  test.each([
    '9.255.255.255',
    '11.0.0.1',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.1.1',
    '100.63.255.255',
    '100.128.0.0',
    '169.253.1.1',
    '2001:db8::1',
    'fec0::1',
    '127.0.0.1',
    '127.8.8.8',
    '::1',
    '::ffff:127.0.0.1',
  ])('%p is none, or this very machine', ip => {
    expect(watched(times(150, arrival(ip)))).toEqual([]);
  });

  test('two clients on the way are enough to be sure', () => {
    expect(
      watched([...times(60, arrival('10.0.0.5')), arrival('10.0.0.6'), ...times(200, arrival('10.0.0.5'))]),
    ).toEqual([]);
  });

  test('two hosts of one IPv6 /56 are two', () => {
    expect(watched([...times(60, arrival('fd00::1')), ...times(60, arrival('fd00::2'))])).toEqual([]);
  });

  test('health checks of the machine itself do not hide it', () => {
    const requests = Array.from({ length: 200 }, (_, i) => arrival(i % 2 === 0 ? '127.0.0.1' : '10.0.0.5'));
    expect(watched(requests)).toEqual([ONE]);
    forgetWarnings();
    expect(watched(requests.slice(0, 199))).toEqual([]);
  });

  test.each([
    [{ 'x-forwarded-for': '198.51.100.7, 127.0.0.1' }, [ONE]],
    [{ forwarded: 'for=198.51.100.7;proto=https' }, [ONE]],
    [{ forwarded: 'for="[2001:db8::1]:4711"' }, [ONE]],
    [{ 'x-real-ip': '1270.example' }, [ONE]],
    [{ 'x-forwarded-for': '127.0.0.1, 127.0.0.1' }, []],
    [{ 'x-forwarded-for': '::1' }, []],
    [{ 'x-forwarded-for': '::ffff:127.0.0.1' }, []],
    [{ forwarded: 'for="[::1]:4711"' }, []],
    [{ forwarded: 'for=127.0.0.1' }, []],
    [{ 'x-real-ip': 'localhost' }, []],
  ])('this machine with %j', (headers, codes) => {
    expect(watched(times(100, arrival('127.0.0.1', headers)))).toEqual(codes);
  });

  test('whoever was told of X-Forwarded-For is not told the same in other words', () => {
    expect(watched(times(300, arrival('10.0.0.5', { 'x-forwarded-for': '198.51.100.7' }, false)))).toEqual([
      OFF,
    ]);
  });

  test('a proxy that shows itself late is still found', () => {
    const late = arrival('203.0.113.7', { 'x-forwarded-for': '198.51.100.7' }, false);
    expect(watched([...times(500, arrival('203.0.113.7', {}, false)), late])).toEqual([OFF]);
  });
});

describe('it costs and breaks nothing', () => {
  test('once it has made up its mind it looks at nothing of a request', () => {
    const watch = new ProxyWatch();
    watch.observe(arrival('203.0.113.7'));
    const untouchable = new Proxy({} as WatchedRequest, {
      get() {
        throw new Error('looked at');
      },
    });
    expect(() => watch.observe(untouchable)).not.toThrow();
  });

  test('a request that is not Express’s has no setting to advise on', () => {
    const codes = watchWarnings();
    const watch = new ProxyWatch();
    for (let i = 0; i < 200; i += 1) {
      watch.observe({ headers: { 'x-forwarded-for': '1.2.3.4' }, socket: { remoteAddress: '10.0.0.5' } });
    }
    expect(codes).toEqual([]);
  });

  test('a trust function that throws fails no request', async () => {
    const watch = new ProxyWatch();
    const app = express();
    app.set('trust proxy', () => {
      throw new Error('from the trust function');
    });
    app.use((req, res) => {
      watch.observe(req);
      res.end('fine');
    });
    const { status, text } = await request(app).get('/').set('X-Forwarded-For', '1.2.3.4');
    expect([status, text]).toEqual([200, 'fine']);
  });
});
