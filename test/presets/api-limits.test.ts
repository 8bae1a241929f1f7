import express5 from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { MemoryStore, rateLimit, subjectHash } from 'limitkeeper';
import { apiLimits } from 'limitkeeper/presets';
import type { ApiLimitsOptions } from 'limitkeeper/presets';
import { DownStore } from '../support/down-store.js';
import { EXPRESSES } from '../support/http.js';
import { expectMistake } from '../support/mistakes.js';
import { serve } from '../support/served.js';
import type { Answer, Asked, Served } from '../support/served.js';

jest.setTimeout(60_000);

const START = 1_750_000_000_000;
const SEC = 1000;

let now: number;
let store: MemoryStore;
let served: Served;
/** Requests that came as far as authentication. */
let reached: number;

beforeEach(() => {
  now = START;
  store = new MemoryStore({ clock: { now: () => now } });
  reached = 0;
});

afterEach(async () => {
  await served.close();
});

/** Any token that begins with "good" is known; a request without one passes, as in an API with public parts. */
const authenticate: RequestHandler = (req, res, next) => {
  reached += 1;
  const token = /^bearer (\S+)/i.exec(req.headers.authorization ?? '')?.[1];
  if (token === undefined || token.startsWith('good')) next();
  else res.status(401).json({ error: 'invalid_token' });
};

const answer: RequestHandler = (req: Request, res: Response) => {
  res.status(Number(req.get('x-answer') ?? 200)).json({ ok: true });
};

async function start(options: ApiLimitsOptions = {}, express = express5): Promise<void> {
  const app = express();
  app.set('trust proxy', 1);
  app.use('/api', apiLimits({ store, ...options }), authenticate, answer);
  // Keeps the error of a callback visible in the answer.
  app.use((error: Error, _req: Request, res: Response, _next: unknown) => {
    res.status(500).json({ code: (error as { code?: string }).code, message: error.message });
  });
  served = await serve(app);
}

const get = (token?: string, headers: Record<string, string> = {}): Promise<Answer> =>
  served.ask('/api/v1/things', {
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
  });

const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });

async function statuses(count: number, ask: (i: number) => Promise<Answer>): Promise<Record<number, number>> {
  const seen: Record<number, number> = {};
  for (let i = 0; i < count; i += 1) {
    const { status } = await ask(i);
    seen[status] = (seen[status] ?? 0) + 1;
  }
  return seen;
}

describe.each(EXPRESSES)('with %s', (_name, express) => {
  test('without a bearer an address has 120 requests in 60 s, then a block of 120 s', async () => {
    await start({}, express);
    expect(await statuses(120, () => get())).toEqual({ 200: 120 });

    const refused = await get();
    expect(refused.status).toBe(429);
    expect(refused.text).toBe('{"error":"rate_limit_exceeded"}');
    expect(refused.headers).toMatchObject({
      'content-type': 'application/json',
      'retry-after': '120',
      'x-ratelimit-limit': '120',
      'ratelimit-policy': '"api.ip";q=120;w=60',
    });
    expect(reached).toBe(120);

    expect((await get(undefined, from('203.0.113.9'))).status).toBe(200);
    now += 120 * SEC - 1;
    expect((await get()).status).toBe(429);
    now += 1;
    expect((await get()).status).toBe(200);
  });

  test('with a bearer a token has 300 requests in 60 s from each address, then a block of 120 s', async () => {
    await start({}, express);
    expect(await statuses(300, () => get('good1'))).toEqual({ 200: 300 });
    const refused = await get('good1');
    expect(refused.status).toBe(429);
    expect(refused.text).toBe('{"error":"rate_limit_exceeded"}');
    expect(refused.headers['retry-after']).toBe('120');
    expect(reached).toBe(300);

    expect((await get('good2')).status).toBe(200);
    expect((await get('good1', from('203.0.113.9'))).status).toBe(200);
    expect((await get()).status).toBe(200);
    now += 120 * SEC;
    expect((await get('good1')).status).toBe(200);
  });

  test('an address that invents a token for each request is refused from the 121st', async () => {
    await start({}, express);
    expect(await statuses(1000, i => get(`invented${String(i)}`))).toEqual({ 401: 120, 429: 880 });
    expect(reached).toBe(120);
    // The block names the address: who has no part in it goes on, and so do requests without a token.
    expect((await get('good1', from('203.0.113.9'))).status).toBe(200);
    expect((await get()).status).toBe(200);
    now += 120 * SEC;
    expect((await get('invented-again')).status).toBe(401);
  });
});

test('the answer to the 120th invented token announces the block', async () => {
  await start();
  await statuses(119, i => get(`invented${String(i)}`));
  const last = await get('invented-last');
  expect(last.status).toBe(401);
  expect(last.headers).toMatchObject({ 'retry-after': '120', 'x-ratelimit-remaining': '0' });
});

test.each([200, 302, 400, 403, 404, 422, 500])('an answer %i says nothing of the token', async status => {
  await start({ tokenIp: { limit: 1000 } });
  const asked = { 'x-answer': String(status) };
  expect(await statuses(130, () => get('good1', asked))).toEqual({ [status]: 130 });
});

test('parallel requests of good clients at one address do not wait for each other', async () => {
  const app = express5();
  let open = (): void => {};
  const all = new Promise<void>(resolve => (open = resolve));
  app.use('/api', apiLimits({ store, invalidToken: { limit: 5 } }), (_req, res) => {
    reached += 1;
    if (reached === 50) open();
    void all.then(() => res.json({ ok: true }));
  });
  served = await serve(app);
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => get(`good${String(i)}`)));
  expect(answers.map(({ status }) => status)).toEqual(new Array(50).fill(200));
});

describe('a client that hangs up', () => {
  /** Sends a request with a token of its own, and leaves once the handler has it. */
  async function startSlow(path: string): Promise<() => Promise<void>> {
    let begun = (): void => {};
    let ended = (): void => {};
    const handler: RequestHandler = (req, res) => {
      reached += 1;
      if (req.path === '/stream') res.write('begun');
      if (req.get('x-stay') === 'yes') {
        res.end();
        return;
      }
      res.on('close', () => ended());
      begun();
    };
    const app = express5();
    app.use('/api', apiLimits({ store, invalidToken: { limit: 3 } }), handler);
    served = await serve(app);
    return async () => {
      const gone = new Promise<void>(resolve => (ended = resolve));
      const there = new Promise<void>(resolve => (begun = resolve));
      served.askAndHangUp(path, there, { authorization: `Bearer t${String(reached)}` });
      await gone;
    };
  }

  const staying = { authorization: 'Bearer t', 'x-stay': 'yes' };

  test('before it is answered is counted as if its token had failed', async () => {
    const hangUp = await startSlow('/api/slow');
    for (let i = 0; i < 3; i += 1) await hangUp();
    expect(reached).toBe(3);
    expect((await served.ask('/api/slow', { headers: staying })).status).toBe(429);
  });

  test('in the middle of an answer is not', async () => {
    const hangUp = await startSlow('/api/stream');
    for (let i = 0; i < 3; i += 1) await hangUp();
    expect(reached).toBe(3);
    expect((await served.ask('/api/stream', { headers: staying })).status).toBe(200);
  });
});

describe('what counts as a token', () => {
  // Two requests with a limit of one for each token: are they the same token? Without one it is api.ip that refuses.
  test.each<[string, string, string, string | undefined]>([
    ['the same token', 'Bearer good', 'Bearer good', 'api.token_ip'],
    ['the scheme in another case', 'Bearer good', 'bEARER good', 'api.token_ip'],
    ['more space', 'Bearer good', 'Bearer   good', 'api.token_ip'],
    ['words behind it', 'Bearer good', 'Bearer good 2', 'api.token_ip'],
    ['another token', 'Bearer good', 'Bearer goods', undefined],
    ['tokens differ by case', 'Bearer good', 'Bearer gOOD', undefined],
    ['JWTs of one issuer, with one header', 'Bearer goodhead.a.x', 'Bearer goodhead.b.y', undefined],
    ['no token after the scheme', 'Bearer', 'Bearer ', 'api.ip'],
    ['another scheme', 'Basic good', 'Basic goods', 'api.ip'],
  ])('%s', async (_name, first, second, refusing) => {
    await start({ tokenIp: { limit: 1 }, ip: { limit: 1 } });
    await get(undefined, { authorization: first });
    const { status, headers } = await get(undefined, {
      authorization: second,
      accept: 'application/problem+json',
    });
    expect([
      status === 429,
      refusing !== undefined && headers['ratelimit']?.includes(`"${refusing}";r=0`),
    ]).toEqual([refusing !== undefined, refusing !== undefined]);
  });

  test('is stored as the hash of token and address only', async () => {
    await start();
    await get('good-secret', from('198.51.100.7'));
    const cells = store.inspect(subjectHash(['good-secret', '198.51.100.7']));
    expect(cells.map(({ scope }) => scope)).toEqual(['api.token_ip']);
  });

  test('selector names the part that is counted, and the whole token where it finds none', async () => {
    await start({ tokenIp: { limit: 1 }, selector: token => /^([^:]*):/.exec(token)?.[1] });
    const seen: number[] = [];
    for (const token of ['good1:a', 'good1:b', 'good2:a', 'good3', 'good4', 'good3']) {
      seen.push((await get(token)).status);
    }
    expect(seen).toEqual([200, 429, 200, 200, 200, 429]);
    expect((await get(':verifier', { 'x-answer': '200' })).status).toBe(401);
  });

  test('token finds it elsewhere', async () => {
    await start({ tokenIp: { limit: 1 }, ip: { limit: 2 }, token: req => req.get('x-api-key') });
    const seen: number[] = [];
    for (const key of ['a', 'a', 'b', '', '', ''])
      seen.push((await get(undefined, { 'x-api-key': key })).status);
    expect(seen).toEqual([200, 429, 200, 200, 200, 429]);
  });

  test.each<[string, ApiLimitsOptions]>([
    ['token', { token: (() => 42) as never }],
    ['selector', { selector: (() => Promise.resolve('x')) as never }],
  ])('%s that returns no text is an error, and no request is let through', async (option, options) => {
    await start(options);
    const { status, text } = await get('good-secret');
    expect(status).toBe(500);
    expect(JSON.parse(text)).toMatchObject({
      code: 'ERR_LIMITKEEPER_CALLBACK',
      message: expect.stringContaining(option),
    });
    expect(text).not.toContain('good-secret');
    expect(reached).toBe(0);
  });
});

describe('options', () => {
  test('override every number', async () => {
    await start({
      tokenIp: { limit: 2, windowSec: 10, blockSec: 30 },
      ip: { limit: 1, windowSec: 20, blockSec: 40 },
      invalidToken: { limit: 3, windowSec: 5, blockSec: 50 },
    });
    expect(await statuses(3, () => get('good'))).toEqual({ 200: 2, 429: 1 });
    expect((await get('good')).headers['retry-after']).toBe('30');
    expect(await statuses(2, () => get())).toEqual({ 200: 1, 429: 1 });
    expect((await get()).headers['retry-after']).toBe('40');
    expect(await statuses(4, i => get(`bad${String(i)}`))).toEqual({ 401: 3, 429: 1 });
    expect((await get('bad')).headers['retry-after']).toBe('50');
    expect((await get()).headers['ratelimit-policy']).toBe('"api.ip";q=1;w=20');
    expect((await get('bad')).headers['ratelimit-policy']).toBe(
      '"api.token_ip";q=2;w=10, "api.invalid_token.ip";q=3;w=5',
    );
  });

  test('an undefined number changes nothing', async () => {
    await start({ ip: { limit: undefined, windowSec: undefined } as never });
    expect((await get()).headers['ratelimit-policy']).toBe('"api.ip";q=120;w=60');
  });

  test('a rule can be counted, keyed, named and switched in another way', async () => {
    await start({
      tokenIp: { mode: 'off' },
      ip: {
        scope: 'public.client',
        algorithm: 'token-bucket',
        burst: 2,
        keyFn: req => req.get('x-client') ?? 'nobody',
      },
    });
    expect(await statuses(310, () => get('good'))).toEqual({ 200: 310 });
    expect((await get(undefined, { 'x-client': 'a' })).headers['ratelimit-policy']).toBe(
      '"public.client";q=2;w=1',
    );
    expect((await get(undefined, { 'x-client': 'a' })).status).toBe(200);
    expect((await get(undefined, { 'x-client': 'a' })).status).toBe(429);
    expect((await get(undefined, { 'x-client': 'b' })).status).toBe(200);
  });

  test('outcome says what a failed token is', async () => {
    await start({
      invalidToken: { limit: 2 },
      outcome: (_req, res) => (res.statusCode === 403 ? 'failure' : 'ignore'),
    });
    expect(await statuses(5, i => get(`bad${String(i)}`))).toEqual({ 401: 5 });
    expect(await statuses(3, i => get(`good${String(i)}`, { 'x-answer': '403' }))).toEqual({
      403: 2,
      429: 1,
    });
  });

  test('ipv6Prefix holds for both parts of the key', async () => {
    await start({ ipv6Prefix: 64, ip: { limit: 1 }, tokenIp: { limit: 1 } });
    const seen: number[] = [];
    for (const address of ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1']) {
      seen.push((await get(undefined, from(address))).status, (await get('good', from(address))).status);
    }
    expect(seen).toEqual([200, 200, 429, 429, 200, 200]);
  });

  test('counts with every other instance of the preset at the same store', async () => {
    await start({ ip: { limit: 2 } });
    const app = express5();
    app.use('/v2', apiLimits({ store, ip: { limit: 2 } }), answer);
    const other = await serve(app);
    try {
      expect((await other.ask('/v2')).status).toBe(200);
      expect((await get()).status).toBe(200);
      expect((await other.ask('/v2')).status).toBe(429);
    } finally {
      await other.close();
    }
  });

  test('the rest goes to rateLimit: skip, message, headers, onLimited, hashSecret', async () => {
    await start({
      ip: { limit: 0 },
      skip: req => req.get('x-health') === 'yes',
      message: 'Slow down.',
      headers: { legacy: false },
    });
    expect((await get(undefined, { 'x-health': 'yes' })).status).toBe(200);
    const { headers, text } = await get(undefined, { accept: 'application/problem+json' });
    expect(JSON.parse(text)).toMatchObject({ detail: 'Slow down.', 'violated-policies': ['api.ip'] });
    expect(headers['x-ratelimit-limit']).toBeUndefined();
    await served.close();

    await start({
      tokenIp: { limit: 1 },
      hashSecret: 'pepper',
      onLimited: (_req, res) => {
        res.json({ instead: true });
      },
    });
    await get('good', from('198.51.100.7'));
    expect((await get('good', from('198.51.100.7'))).text).toBe('{"instead":true}');
    expect(store.inspect(subjectHash(['good', '198.51.100.7'], 'pepper'))).toHaveLength(1);
  });
});

describe('when the store fails', () => {
  test('the API stays open by default', async () => {
    await start({ store: new DownStore(), ip: { limit: 1 } });
    expect(await statuses(3, () => get())).toEqual({ 200: 3 });
  });

  test("failMode: 'closed' closes the API, and nothing else that uses the store", async () => {
    const down = new DownStore();
    const app = express5();
    app.use('/api', apiLimits({ store: down, failMode: 'closed' }), answer);
    app.use('/page', rateLimit({ scope: 'page', limit: 1, windowSec: 1, store: down }), answer);
    served = await serve(app);
    const ask = (path: string, asked?: Asked): Promise<Answer> => served.ask(path, asked);
    const closed = await ask('/api');
    expect([closed.status, closed.text]).toEqual([503, '{"error":"rate_limiter_unavailable"}']);
    expect((await ask('/api', { headers: { authorization: 'Bearer good' } })).status).toBe(503);
    expect((await ask('/page')).status).toBe(200);
  });
});

describe('a mistake in the options is thrown, and names what the user wrote', () => {
  beforeEach(() => start());

  test.each<[object, string, string]>([
    [{ tokenIP: {} }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'tokenIP'],
    [{ limit: 5 }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'limit'],
    [{ ip: { limits: 5 } }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'limits'],
    [{ ip: { strict: true } }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'strict'],
    [{ ip: { when: () => false } }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'when'],
    [{ ip: 60 }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'ip'],
    [{ ip: { limit: -1 } }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'ip.limit'],
    [{ tokenIp: { windowSec: '60' } }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'tokenIp.windowSec'],
    [{ invalidToken: { strict: 1 } }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'invalidToken.strict'],
    [{ invalidToken: { scope: 'api.ip' } }, 'ERR_LIMITKEEPER_DUPLICATE_SCOPE', 'scope'],
    [{ token: 'x-api-key' }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'token'],
    [{ selector: ':' }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'selector'],
    [{ outcome: true }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'outcome'],
    [{ failMode: 'shut' }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'failMode'],
    [{ ipv6Prefix: 16 }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'ipv6Prefix'],
    [{ store: {} }, 'ERR_LIMITKEEPER_STORE_CONTRACT', 'store'],
  ])('%j', (options, code, option) => {
    expectMistake(() => apiLimits(options), code, option);
  });

  test.each([null, 'open', [1]])('options %j', options => {
    expect(() => apiLimits(options as never)).toThrow(
      expect.objectContaining({ code: 'ERR_LIMITKEEPER_OPTION_TYPE' }),
    );
  });
});
