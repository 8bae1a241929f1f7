import http from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import supertest from 'supertest';
import { createLimiter, MemoryStore } from '../../src/index.js';
import { adminApp, asAdmin, asReader, twoLimiters } from '../support/admin.js';
import { EXPRESSES } from '../support/http.js';

const HASH = 'a'.repeat(64);
const ALICE = { subject: { parts: ['alice'] } };

const expectProblem = (reply: supertest.Response, status: number): void => {
  expect({ status: reply.status, type: reply.headers['content-type'] }).toEqual({
    status,
    type: 'application/problem+json',
  });
  expect(JSON.parse(reply.text)).toMatchObject({
    status,
    title: expect.any(String),
    detail: expect.any(String),
  });
};

describe.each(EXPRESSES)('with %s', (_, framework) => {
  describe.each(['/status', '/reset', '/block', '/unblock'])('POST %s', path => {
    it.each([
      ['no body', ''],
      ['half of one', '{"subject":'],
      ['a text', 'subject=alice'],
      ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ])('answers 400 to %s', async (__, body) => {
      const { app } = adminApp({}, framework);
      const reply = await supertest(app)
        .post(`/admin${path}`)
        .set({ ...asAdmin, 'Content-Type': 'application/json' })
        .serialize(bytes => bytes as string)
        .send(body as string);
      expectProblem(reply, 400);
    });

    it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonx'])(
      'answers 400 to JSON that calls itself %s, as forms of other sites would',
      async type => {
        const { post } = adminApp({}, framework);
        expectProblem(await post(path, JSON.stringify(ALICE), { ...asAdmin, 'Content-Type': type }), 400);
      },
    );

    it('answers 400 to no body at all, whatever a parser before it has made of that', async () => {
      const limiters = twoLimiters();
      const { router } = adminApp({ limiters }, framework);
      const app = framework();
      app.use(framework.json(), router);
      expectProblem(await supertest(app).post(path).set(asAdmin), 400);
      expectProblem(
        await supertest(app).post(path).set(asAdmin).set('Content-Type', 'application/json'),
        400,
      );
    });

    it.each<[string, unknown]>([
      ['null', null],
      ['a list', [ALICE]],
      ['a number', 5],
      ['nothing in it', {}],
      ['no subject', { scope: 'api' }],
      ['a subject that is a text', { subject: 'alice' }],
      ['a subject of nothing', { subject: {} }],
      ['a subject of two kinds', { subject: { parts: ['alice'], hash: HASH } }],
      ['parts that are a text', { subject: { parts: 'alice' } }],
      ['no parts', { subject: { parts: [] } }],
      ['an empty part', { subject: { parts: [''] } }],
      ['a part that is nothing', { subject: { parts: [null] } }],
      ['a part that is an object', { subject: { parts: [{}] } }],
      ['too many parts', { subject: { parts: Array.from({ length: 17 }, () => 'a') } }],
      ['a number that JSON has rounded', { subject: { parts: [2 ** 60] } }],
      ['a short hash', { subject: { hash: 'abc' } }],
      ['a hash of other letters', { subject: { hash: 'g'.repeat(64) } }],
      ['a scope that is a number', { ...ALICE, scope: 5 }],
      ['an empty scope', { ...ALICE, scope: '' }],
      ['a mistyped scope, which would mean all', { ...ALICE, scop: 'api' }],
    ])('answers 422 to %s', async (__, body) => {
      const { post } = adminApp({}, framework);
      const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
      const more = path === '/block' ? { scope: 'api', blockSec: 5 } : {};
      const text = JSON.stringify(isObject ? { ...more, ...body } : body);
      expectProblem(await post(path, text), 422);
    });

    it('answers 422 to __proto__, and is not changed by it', async () => {
      const { post } = adminApp({}, framework);
      for (const body of [
        '{"__proto__":{"subject":{"parts":["alice"]}}}',
        '{"subject":{"__proto__":{"parts":["alice"]}}}',
        '{"subject":{"parts":["alice"]},"__proto__":{"scope":"api","blockSec":5}}',
        '{"subject":{"parts":["alice"]},"constructor":{"prototype":{"scope":"api"}}}',
      ]) {
        expectProblem(await post(path, body), 422);
      }
      expect(({} as { scope?: string }).scope).toBeUndefined();
    });

    it('answers 404 to a scope that nobody counts, and says which there are', async () => {
      const { post } = adminApp({}, framework);
      for (const scope of [
        'nope',
        'API',
        '__proto__',
        'constructor',
        'a/b',
        '%',
        '😀',
        '\0',
        'x'.repeat(10_000),
      ]) {
        const reply = await post(path, { ...ALICE, scope, ...(path === '/block' ? { blockSec: 5 } : {}) });
        expectProblem(reply, 404);
        expect(reply.body.scopes).toEqual(['api', 'login.pair']);
      }
    });

    it('answers 413 to more than 16 kB, and takes 16 kB', async () => {
      const { post } = adminApp({}, framework);
      const extra = path === '/block' ? { scope: 'api', blockSec: 5 } : {};
      const sized = (bytes: number) => {
        const empty = JSON.stringify({ subject: { parts: [''] }, ...extra }).length;
        return JSON.stringify({ subject: { parts: ['x'.repeat(bytes - empty)] }, ...extra });
      };
      expect((await post(path, sized(16 * 1024))).status).toBe(200);
      expectProblem(await post(path, sized(16 * 1024 + 1)), 413);
      expectProblem(await post(path, sized(10_000_000)), 413);
    });
  });

  it.each<[string, object]>([
    ['no duration', {}],
    ['two', { blockSec: 5, forever: true }],
    ['none for ever', { forever: false }],
    ['a zero', { blockSec: 0 }],
    ['a negative', { blockSec: -1 }],
    ['a text', { blockSec: '5' }],
    ['half a millisecond', { blockSec: 0.0005 }],
    ['eleven years', { blockSec: 11 * 366 * 86_400 }],
  ])('answers 422 to a block of %s', async (__, duration) => {
    const { post } = adminApp({}, framework);
    expectProblem(await post('/block', { ...ALICE, scope: 'api', ...duration }), 422);
  });

  it('answers 422 to a block without a scope', async () => {
    expectProblem(await adminApp({}, framework).post('/block', { ...ALICE, blockSec: 5 }), 422);
  });

  it.each([
    ['/status', 422],
    ['/status?hash=abc', 422],
    [`/status?hash=${HASH}&hash=${HASH}`, 422],
    [`/status?hash=${HASH}&part=a@b.c`, 422],
    [`/status?hash[]=${HASH}`, 422],
    [`/status?hash=${HASH}&scope=`, 422],
    [`/status?hash=${HASH}&scope=%E0%A4%A`, 404],
    [`/status?hash=${HASH}&scope=a%2Fb`, 404],
    [`/status?hash=${HASH}&__proto__=1`, 422],
    ['/blocks?count=0', 422],
    ['/blocks?count=501', 422],
    ['/blocks?count=1e2', 422],
    ['/blocks?cursor=!', 422],
    [`/blocks?cursor=${Buffer.from('[7]').toString('base64url')}`, 422],
    [`/blocks?cursor=${Buffer.from('[0,"x"]').toString('base64url')}`, 422],
    [`/blocks?cursor=${'x'.repeat(1001)}`, 422],
    ['/blocks?scope=nope', 404],
    ['/blocks?part=a@b.c', 422],
    ['/scopes?recent=yes', 422],
  ])('answers GET %s with %i', async (path, status) => {
    const { get } = adminApp({}, framework);
    expectProblem(await get(path, asReader), status);
  });

  it.each([
    ['slashes', 'a/b//c'],
    ['percent signs', '%00%2F%'],
    ['emoji', '👩‍👩‍👧‍👦 😀'],
    ['NUL', 'a\0b'],
    ['a lone surrogate', '\ud800'],
    ['10 kB', 'x'.repeat(10_000)],
    ['the name of a prototype', '__proto__'],
    ['an attempt at SQL', "'; DROP TABLE request_rate_limits; --"],
  ])('handles a subject of %s as any other', async (__, subject) => {
    const limiter = createLimiter({ scope: 'api', limit: 5, windowSec: 60, store: new MemoryStore() });
    const { post } = adminApp({ limiters: [limiter] }, framework);
    await limiter.consume(subject);
    await limiter.consume([subject, 'pair']);
    const { body } = await post('/status', { subject: { parts: [subject] } });
    expect(body.readings).toMatchObject([{ reading: { remaining: 4 } }]);
    await post('/block', { subject: { parts: [subject, 'pair'] }, scope: 'api', blockSec: 60 });
    expect((await limiter.peek([subject, 'pair'])).reason).toBe('blocked');
    expect((await post('/unblock', { subject: { part: subject } })).body.unblocked).toHaveLength(1);
    expect((await post('/reset', { subject: { parts: [subject] } })).body.removed).toHaveLength(1);
  });

  it.each(['a/b', '100 % sure', '😀', 'login.é', '__proto__'])(
    'handles the scope %p as any other',
    async scope => {
      const limiter = createLimiter({ scope, limit: 5, windowSec: 60, store: new MemoryStore() });
      const { get, post } = adminApp({ limiters: [limiter] }, framework);
      expect((await post('/block', { ...ALICE, scope, blockSec: 60 })).body.blocked).toMatchObject([
        { scope },
      ]);
      expect((await get(`/blocks?scope=${encodeURIComponent(scope)}`)).body.blocks).toMatchObject([
        { scope },
      ]);
      expect((await post('/unblock', { ...ALICE, scope })).body.unblocked).toHaveLength(1);
    },
  );
});

describe('an answer 422', () => {
  const SECRET = 'eve@example.com';
  const body = (input: object) => ['post', input] as const;
  const query = (text: string) => ['get', text] as const;

  it.each<[string, readonly ['post', object] | readonly ['get', string], string, string, RegExp]>([
    ['no subject', body({ scope: 'api' }), '/status', 'subject', /is missing/],
    ['a subject that is a text', body({ subject: SECRET }), '/reset', 'subject', /must be an object/],
    [
      'a subject of two forms',
      body({ subject: { parts: [SECRET], part: SECRET } }),
      '/reset',
      'subject',
      /exactly one/,
    ],
    ['a bad hash', body({ subject: { hash: SECRET } }), '/unblock', 'subject.hash', /64 hex digits/],
    [
      'a bad part',
      body({ subject: { parts: [SECRET, ''] } }),
      '/status',
      'subject.parts.1',
      /must not be empty/,
    ],
    ['no parts', body({ subject: { parts: [] } }), '/status', 'subject.parts', /must not be empty/],
    [
      'parts in excess',
      body({ subject: { parts: Array.from({ length: 17 }, () => SECRET) } }),
      '/status',
      'subject.parts',
      /at most 16/,
    ],
    ['an unknown field', body({ ...ALICE, [SECRET]: 1 }), '/status', 'body', /none of: subject, scope/],
    [
      'an unknown field deep down',
      body({ subject: { ...ALICE.subject, [SECRET]: 1 } }),
      '/status',
      'subject',
      /none of: parts, hash, part/,
    ],
    ['a list', body([SECRET]), '/status', 'body', /must be an object/],
    ['a scope that is a number', body({ ...ALICE, scope: 5 }), '/status', 'scope', /must be a text/],
    ['no duration', body({ ...ALICE, scope: 'api' }), '/block', 'blockSec', /exactly one of blockSec/],
    [
      'a bad duration',
      body({ ...ALICE, scope: 'api', blockSec: SECRET }),
      '/block',
      'blockSec',
      /number of seconds/,
    ],
    [
      'a bad "forever"',
      body({ ...ALICE, scope: 'api', forever: SECRET }),
      '/block',
      'forever',
      /must be true/,
    ],
    ['a bad hash in a query', query(`hash=${SECRET}`), '/status', 'hash', /first 12 or more/],
    ['an unknown parameter', query(`hash=${HASH}&${SECRET}=1`), '/status', 'query', /none of: hash, scope/],
    ['a parameter given twice', query(`hash=${HASH}&hash=${HASH}`), '/status', 'hash', /given twice/],
    ['an unknown one given twice', query(`${SECRET}=1&${SECRET}=2`), '/status', 'query', /given twice/],
    ['a bad count', query(`count=${SECRET}`), '/blocks', 'count', /whole number from 1 to 500/],
    ['a bad cursor', query(`cursor=${SECRET}`), '/blocks', 'cursor', /handed out here/],
    ['a long cursor', query(`cursor=${SECRET.repeat(100)}`), '/blocks', 'cursor', /handed out here/],
    ['a bad recent', query(`recent=${SECRET}`), '/scopes', 'recent', /0 or 1/],
  ])(
    'to %s names the field in words of ours, and repeats nothing',
    async (_, [method, input], path, field, words) => {
      const { get, post } = adminApp();
      const reply = method === 'get' ? await get(`${path}?${input}`) : await post(path, input);
      expectProblem(reply, 422);
      const { body: problem } = reply;
      expect(problem.field).toBe(field);
      expect(problem.errors[0]).toEqual({ field, detail: expect.stringMatching(words) });
      expect(problem.detail).toBe(`${field}: ${String(problem.errors[0].detail)}.`);
      expect(reply.text).not.toMatch(/eve@|Invalid|Unrecognized|expected|received/);
    },
  );
});

describe('a body', () => {
  it('may have been parsed before, into an object, a text or bytes', async () => {
    for (const parser of [express.json(), express.text({ type: '*/*' }), express.raw({ type: '*/*' })]) {
      const { router } = adminApp();
      const app = express();
      app.use(parser, router);
      expect((await supertest(app).post('/status').set(asAdmin).send(ALICE)).status).toBe(200);
    }
  });

  it('of more than 16 kB is refused though a parser before has taken it', async () => {
    const { router } = adminApp();
    const app = express();
    app.use(express.json({ limit: '1mb' }), router);
    const large = { subject: { parts: ['x'.repeat(20_000)] } };
    expectProblem(await supertest(app).post('/status').set(asAdmin).send(large), 413);
  });

  it('is answered, not waited for, when a parser before has left nothing of it', async () => {
    const { router } = adminApp();
    const app = express();
    app.use((req, _res, next) => {
      req.on('end', next).resume();
    }, router);
    expectProblem(await supertest(app).post('/status').set(asAdmin).send(ALICE), 400);
  });

  it('of 10 MB without a length is turned away after 16 kB, and not kept', async () => {
    const { app } = adminApp();
    const server = http.createServer(app);
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    let seen = 0;
    server.prependListener('request', (req: http.IncomingMessage) => {
      const { emit } = req;
      req.emit = function (this: http.IncomingMessage, name: string, ...args: unknown[]) {
        if (name === 'data') seen += (args[0] as Buffer).length;
        return Reflect.apply(emit, this, [name, ...args]);
      } as never;
    });
    const sending = new Promise<number>((resolve, reject) => {
      const request = http.request(
        {
          port: (server.address() as AddressInfo).port,
          path: '/admin/reset',
          method: 'POST',
          headers: { ...asAdmin, 'Content-Type': 'application/json' },
        },
        response => {
          expect(response.statusCode).toBe(413);
          resolve(seen);
          response.resume();
        },
      );
      request.on('error', reject);
      // The next 64 kB only once the last are gone, until the answer is there.
      const chunk = Buffer.alloc(64 * 1024, 0x20);
      let sent = 0;
      const more = (): void => {
        if (sent >= 10_000_000) {
          request.end();
          return;
        }
        sent += chunk.length;
        request.write(chunk, () => setImmediate(more));
      };
      more();
    });
    const seenAtAnswer = await sending.finally(() => {
      server.closeAllConnections();
      server.close();
    });
    // What had arrived when it was found too long: some of the 64 kB pieces, by no means all of them.
    expect(seenAtAnswer).toBeLessThan(1_000_000);
  });
});
