// Reports about addresses and proxies. The ids name the rows of a list of public reports.
import { byStatus, clientIp, MemoryStore, rateLimit } from 'limitkeeper';
import { call, closeServers, EXPRESSES, serve, statuses, times } from '../support/http.js';
import { limited } from '../support/limited.js';
import { forgetWarnings, watchWarnings } from '../support/warnings.js';

beforeEach(forgetWarnings);
afterEach(async () => {
  jest.restoreAllMocks();
  await closeServers();
});

const RULE = { scope: 'ip', limit: 3, windowSec: 60 } as const;

describe.each(EXPRESSES)('%s', (_name, express) => {
  const forwarded = (i: number) => ({ 'X-Forwarded-For': `198.51.100.${String(i)}` });

  describe('P01: X-Forwarded-For while trust proxy is off', () => {
    test('one warning that names the setting, no stack trace, and no request fails', async () => {
      const emit = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
      const { get } = await limited(express, { ...RULE, limit: 100 }, { trustProxy: false });
      expect(await statuses(20, i => get(forwarded(i)))).toEqual(times(20, 200));
      expect(emit).toHaveBeenCalledTimes(1);
      const [text, options] = emit.mock.calls[0] as unknown as [string, { code: string }];
      expect(options.code).toBe('LIMITKEEPER_TRUST_PROXY_OFF');
      expect(text).toMatch(/trust proxy/);
      expect(text).not.toMatch(/\n/);
      expect(text).not.toContain('198.51.100');
    });

    test('who knows switches it off', async () => {
      process.env['LIMITKEEPER_NO_WARNINGS'] = 'LIMITKEEPER_TRUST_PROXY_OFF';
      const warnings = watchWarnings();
      const { get } = await limited(express, RULE, { trustProxy: false });
      await get(forwarded(1));
      delete process.env['LIMITKEEPER_NO_WARNINGS'];
      expect(warnings).toEqual([]);
    });
  });

  test('P02: all traffic from one private address is noticed after a hundred requests', async () => {
    const warnings = watchWarnings();
    const { get } = await limited(express, { ...RULE, limit: 1000 });
    await statuses(99, () => get({ 'X-Forwarded-For': '10.0.0.5' }));
    expect(warnings).toEqual([]);
    await get({ 'X-Forwarded-For': '10.0.0.5' });
    expect(warnings).toEqual(['LIMITKEEPER_ONE_PRIVATE_ADDRESS']);
  });

  describe('P03: a client that invents addresses', () => {
    test('is warned of at once where trust proxy is true', async () => {
      const warnings = watchWarnings();
      const { get } = await limited(express, RULE, { trustProxy: true });
      await get(forwarded(1));
      expect(warnings).toEqual(['LIMITKEEPER_TRUST_PROXY_TRUE']);
    });

    test('gains nothing where the number of proxies is set: the left-most address is his, not ours', async () => {
      const { get } = await limited(express, RULE);
      const seen = await statuses(5, i => get({ 'X-Forwarded-For': `203.0.113.${String(i)}, 198.51.100.7` }));
      expect(seen).toEqual([200, 200, 200, 429, 429]);
    });
  });

  test('P07: a keyFn of one’s own is judged by what it answers, not by its text', async () => {
    const warnings = watchWarnings();
    const { get } = await limited(express, { ...RULE, keyFn: req => (req.ip ?? '').toLowerCase() });
    const seen = await statuses(5, i => get({ 'X-Forwarded-For': `2001:DB8:0:AA00::${String(i + 1)}` }));
    expect(seen).toEqual([200, 200, 200, 429, 429]);
    expect(warnings).toEqual([]);
  });

  test('P10: a client that walks through its /64 reaches the limit, and so does one of a /56', async () => {
    const { get, store } = await limited(express, RULE);
    const inOne64 = await statuses(100, i =>
      get({ 'X-Forwarded-For': `2001:db8:0:aa00:${i.toString(16)}::${String(i)}` }),
    );
    expect(inOne64).toEqual([...times(3, 200), ...times(97, 429)]);
    const inOne56 = await statuses(10, i =>
      get({ 'X-Forwarded-For': `2001:db8:0:aa${(16 + i).toString(16)}::1` }),
    );
    expect(inOne56).toEqual(times(10, 429));
    expect(store.size).toBe(1);
  });

  test('P10: 100,000 addresses of a /64 are one client', () => {
    const prefixes = new Set<string>();
    for (let i = 0; i < 100_000; i += 1) {
      const ip = `2001:db8:0:aa00:${(i >> 8).toString(16)}:${(i & 255).toString(16)}::1`;
      prefixes.add(clientIp({ ip }));
    }
    expect([...prefixes]).toEqual(['2001:db8:0:aa00::/56']);
  });

  test('S9: clients behind NAT64 have a quota each, the same as over IPv4', async () => {
    const { get } = await limited(express, RULE);
    const from = (prefix: string, i: number) =>
      get({ 'X-Forwarded-For': `${prefix}203.0.113.${String(i + 1)}` });
    expect(await statuses(6, i => from('64:ff9b::', i))).toEqual(times(6, 200));
    expect(await statuses(3, () => from('64:ff9b::', 0))).toEqual([200, 200, 429]);
    expect((await from('', 0)).status).toBe(429);
  });

  describe('P11: keys of several parts', () => {
    test('pairs that look alike when joined have counters of their own', async () => {
      const pairs: [string, string][] = [
        ['1.1.1.1', '1/x'],
        ['1.1.1.11', '/x'],
      ];
      const { get } = await limited(express, { ...RULE, limit: 1, keyFn: () => pairs.shift() ?? '' });
      expect(await statuses(2, () => get())).toEqual([200, 200]);
    });

    test('one address in several spellings has one counter', async () => {
      const spellings = [
        '::ffff:198.51.100.7',
        '::ffff:c633:6407',
        '198.51.100.7',
        '0:0:0:0:0:ffff:c633:6407',
      ];
      const { get } = await limited(express, { ...RULE, keyFn: req => ['login', req.ip ?? ''] });
      const seen = await statuses(4, i => get({ 'X-Forwarded-For': spellings[i] ?? '' }));
      expect(seen).toEqual([200, 200, 200, 429]);
    });
  });

  test('an address that is forgotten (a socket that is gone) is never the text "undefined"', async () => {
    const limiter = rateLimit({ ...RULE, store: new MemoryStore(), outcome: byStatus });
    const app = express();
    app.use((req, _res, next) => {
      Object.defineProperty(req, 'ip', { value: undefined });
      next();
    });
    app.use(limiter, (_req, res) => res.send('ok'));
    await call(await serve(app));
    expect((await limiter.limiter.peek('undefined')).remaining).toBe(3);
  });
});
