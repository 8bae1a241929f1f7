import fc from 'fast-check';
import type { ErrorRequestHandler } from 'express';
import { byStatus, MemoryStore, rateLimit } from 'limitkeeper';
import type { LimitkeeperError, RateLimitOptions } from 'limitkeeper';
import { call, closeServers, cutShort, EXPRESSES, pause, serve, until } from '../support/http.js';
import type { Express, Reply } from '../support/http.js';
import { RemoteStore } from '../support/stores.js';
import { forgetWarnings, watchWarnings } from '../support/warnings.js';

afterEach(async () => {
  // Where the process would have died later, Jest fails the test that runs: it must still run then.
  await pause(5);
  await closeServers();
});

interface Run {
  readonly get: () => Promise<Reply>;
  readonly url: string;
  /** What came to `next`, in order. */
  readonly errors: LimitkeeperError[];
  readonly reached: jest.Mock;
  readonly store: MemoryStore;
}

/** An app whose error handler notes what it gets and answers with its status or 500. */
async function run(express: Express, options: object): Promise<Run> {
  const store = new MemoryStore();
  const errors: LimitkeeperError[] = [];
  const reached = jest.fn();
  const app = express();
  app.use(rateLimit({ store, ...options } as unknown as RateLimitOptions), (_req, res) => {
    reached();
    res.send('ok');
  });
  const onError: ErrorRequestHandler = (error, _req, res, _next) => {
    errors.push(error);
    res.status(error?.status ?? 500).send('error page');
  };
  app.use(onError);
  const url = await serve(app);
  return { get: () => call(url), url, errors, reached, store };
}

const BASE = { scope: 'test', limit: 5, windowSec: 60 };
const BESIDE = { scope: 'beside', limit: 5, windowSec: 60 };
const boom = new Error('boom');

/** In every way in which a callback can give a value. */
const GIVEN: readonly (readonly [string, (value: unknown) => unknown])[] = [
  ['at once', value => value],
  ['later', value => pause(2).then(() => value)],
  // As query builders do: no promise, but it has a `then`, which need not answer one.
  [
    'as a bare thenable',
    value => ({ then: (done: (v: unknown) => void) => void setTimeout(done, 1, value) }),
  ],
];

/** In every way in which a callback can fail. */
const FAILED: readonly (readonly [string, (error: unknown) => unknown])[] = [
  [
    'throws',
    error => {
      throw error;
    },
  ],
  [
    'rejects',
    async error => {
      throw error;
    },
  ],
  ['rejects later', error => pause(2).then(() => Promise.reject(error as Error))],
  [
    'rejects as a bare thenable',
    error => ({ then: (_: unknown, fail: (e: unknown) => void) => fail(error) }),
  ],
];

describe.each(EXPRESSES)('%s', (_name, express) => {
  describe.each(GIVEN)('a bad value that comes %s goes to next once and charges nothing', (_how, give) => {
    test.each<readonly [name: string, value: unknown]>([
      ['undefined', undefined],
      ['null', null],
      ['an empty string', ''],
      ['NaN', NaN],
      ['Infinity', Infinity],
      ['true', true],
      ['an object', { id: 1 }],
      ['a symbol', Symbol('alice')],
      ['a function', () => 'alice'],
      ['an empty array', []],
      ['an array with a hole', ['alice', undefined]],
      ['an array with an empty part', ['alice', '']],
      ['a nested array', ['alice', ['203.0.113.7']]],
    ])('keyFn: %s', async (_what, value) => {
      const { get, errors, reached, store } = await run(express, {
        rules: [BESIDE, { ...BASE, keyFn: () => give(value) }],
      });
      expect((await get()).status).toBe(500);
      expect(errors).toEqual([
        expect.objectContaining({ code: 'ERR_LIMITKEEPER_SUBJECT', option: 'rules[1].keyFn' }),
      ]);
      expect(errors[0]?.message).not.toContain('alice');
      expect([reached.mock.calls.length, store.size]).toEqual([0, 0]);
    });

    test.each<readonly [option: string, value: unknown, code: string]>([
      ['limit', -1, 'ERR_LIMITKEEPER_OPTION_RANGE'],
      ['limit', 1.5, 'ERR_LIMITKEEPER_OPTION_RANGE'],
      ['limit', NaN, 'ERR_LIMITKEEPER_OPTION_RANGE'],
      ['limit', Infinity, 'ERR_LIMITKEEPER_OPTION_RANGE'],
      ['limit', '5', 'ERR_LIMITKEEPER_OPTION_TYPE'],
      ['limit', undefined, 'ERR_LIMITKEEPER_OPTION_TYPE'],
      ['limit', 'unlimited', 'ERR_LIMITKEEPER_OPTION_TYPE'],
      ['limit', Object.create(null), 'ERR_LIMITKEEPER_OPTION_TYPE'],
      ['plan', undefined, 'ERR_LIMITKEEPER_PLAN'],
      ['plan', 'free', 'ERR_LIMITKEEPER_PLAN'],
      ['plan', [5, 60], 'ERR_LIMITKEEPER_PLAN'],
      ['plan', {}, 'ERR_LIMITKEEPER_OPTION_TYPE'],
      ['plan', { limit: 5 }, 'ERR_LIMITKEEPER_OPTION_TYPE'],
      ['plan', { limit: 5, windowSec: 0 }, 'ERR_LIMITKEEPER_OPTION_RANGE'],
      ['plan', { limit: 5, windowSec: 60, burst: 2 }, 'ERR_LIMITKEEPER_PLAN'],
      ['plan', { limit: 5, windowSec: 60, blockSec: '60' }, 'ERR_LIMITKEEPER_OPTION_TYPE'],
      ['plan', { limit: 5, windowSec: 60, blocksec: 60 }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION'],
      ['plan', { limit: 2 ** 52, windowSec: 1 }, 'ERR_LIMITKEEPER_EXACTNESS'],
      ['cost', -1, 'ERR_LIMITKEEPER_COST'],
      ['cost', 0.5, 'ERR_LIMITKEEPER_COST'],
      ['cost', NaN, 'ERR_LIMITKEEPER_COST'],
      ['cost', '1', 'ERR_LIMITKEEPER_COST'],
      ['cost', undefined, 'ERR_LIMITKEEPER_COST'],
      ['cost', { test: 1 }, 'ERR_LIMITKEEPER_COST'],
    ])('%s: %p', async (option, value, code) => {
      const numbers = option === 'plan' ? { scope: 'test' } : BASE;
      const { get, errors, reached, store } = await run(express, {
        rules: [BESIDE, { ...numbers, [option]: () => give(value) }],
      });
      expect((await get()).status).toBe(500);
      expect(errors).toEqual([expect.objectContaining({ code, option: `rules[1].${option}` })]);
      expect([reached.mock.calls.length, store.size]).toEqual([0, 0]);
    });

    test.each<readonly [option: string, value: unknown]>([
      ['skip', 'yes'],
      ['skip', 1],
      ['skip', {}],
      ['skip', undefined],
      ['when', undefined],
      ['when', 0],
      ['when', null],
    ])('%s: %p switches nothing off', async (option, value) => {
      const { get, errors, store } = await run(express, { ...BASE, [option]: () => give(value) });
      expect((await get()).headers['x-ratelimit-remaining']).toBe('4');
      expect([errors, store.size]).toEqual([[], 1]);
    });
  });

  describe.each(FAILED)('a callback that %s', (_how, fail) => {
    test.each(['keyFn', 'limit', 'plan', 'when', 'cost', 'skip'])(
      '%s: goes to next once and charges nothing',
      async option => {
        const { windowSec, scope } = BASE;
        const failing = {
          scope,
          ...(option === 'plan' ? {} : { limit: 5, windowSec }),
          ...(option === 'skip' ? {} : { [option]: () => fail(boom) }),
        };
        const { get, errors, reached, store } = await run(express, {
          rules: [BESIDE, failing, { ...BESIDE, scope: 'after' }],
          ...(option === 'skip' ? { skip: () => fail(boom) } : {}),
        });
        const reply = await get();
        expect([reply.status, reply.body]).toEqual([500, 'error page']);
        expect(reply.headers['x-ratelimit-limit']).toBeUndefined();
        expect(errors).toEqual([boom]);
        expect([reached.mock.calls.length, store.size]).toEqual([0, 0]);
      },
    );

    test.each([undefined, null, false, 0, '', 'route', 'router'])(
      'with %p, which next would take for leave to go on: refused all the same',
      async thrown => {
        for (const option of ['keyFn', 'skip', 'onLimited']) {
          const { get, errors, reached } = await run(express, {
            ...BASE,
            limit: 0,
            [option]: () => fail(thrown),
          });
          expect((await get()).status).toBe(500);
          expect(errors).toEqual([expect.objectContaining({ code: 'ERR_LIMITKEEPER_CALLBACK' })]);
          expect(reached).not.toHaveBeenCalled();
        }
      },
    );

    test('outcome: goes to the event "error", and the request is ignored', async () => {
      const store = new MemoryStore();
      const limiter = rateLimit({
        ...BASE,
        store,
        count: 'failures',
        resetOnSuccess: true,
        keyFn: () => 'alice',
        outcome: (() => fail(boom)) as never,
      });
      const told: unknown[] = [];
      limiter.limiter.on('error', event => told.push(event));
      const app = express();
      app.use(limiter, (_req, res) => res.status(401).send('no'));
      const reply = await call(await serve(app));
      expect([reply.status, reply.body, reply.headers['x-ratelimit-remaining']]).toEqual([401, 'no', '5']);
      await pause(10);
      expect(told).toContainEqual({ error: expect.anything(), source: 'outcome' });
      expect(store.size).toBe(0);
    });
  });

  test('of several callbacks that fail one is told, and none ends the process', async () => {
    const { get, errors, store } = await run(express, {
      rules: [
        { ...BASE, scope: 'a', keyFn: () => Promise.reject(new Error('first')) },
        { ...BASE, scope: 'b', keyFn: () => pause(3).then(() => Promise.reject(new Error('second'))) },
        {
          ...BASE,
          scope: 'c',
          keyFn: () => {
            throw boom;
          },
        },
      ],
    });
    expect((await get()).status).toBe(500);
    expect(errors).toHaveLength(1);
    await pause(10);
    expect(store.size).toBe(0);
  });

  test.each([
    ["the word 'failed'", 'failed'],
    ['nothing', undefined],
    ['true', true],
    ['a promise', Promise.resolve('failure')],
  ])('an outcome that is %s is reported and ignored', async (_what, value) => {
    const limiter = rateLimit({
      ...BASE,
      store: new MemoryStore(),
      count: 'failures',
      outcome: (() => value) as never,
    });
    const told: unknown[] = [];
    limiter.limiter.on('error', event => told.push(event));
    const app = express();
    app.use(limiter, (_req, res) => res.status(401).send('no'));
    expect((await call(await serve(app))).headers['x-ratelimit-remaining']).toBe('5');
    expect(told).toEqual([
      {
        source: 'outcome',
        error: expect.objectContaining({ code: 'ERR_LIMITKEEPER_CALLBACK', option: 'outcome' }),
      },
    ]);
  });

  test.each([
    ['throws', () => fail(boom)],
    ['is async', () => Promise.resolve('failure')],
  ])(
    'an outcome that %s, with nobody listening: one warning, for guesses are not counted',
    async (_what, outcome) => {
      forgetWarnings();
      const codes = watchWarnings();
      const rule = {
        ...BASE,
        store: new MemoryStore(),
        count: 'failures',
        outcome: outcome as never,
      } as const;
      const [silent, heard] = [rateLimit(rule), rateLimit(rule)];
      heard.limiter.on('error', () => {});
      const app = express();
      app.use('/heard', heard, (_req, res) => res.status(401).send('no'));
      app.use('/silent', silent, (_req, res) => res.status(401).send('no'));
      const url = await serve(app);
      await call(`${url}/heard`);
      expect(codes).toEqual([]);
      for (let i = 0; i < 7; i += 1) expect((await call(`${url}/silent`)).status).toBe(401);
      expect(codes).toEqual(['LIMITKEEPER_OUTCOME_FAILED']);
      jest.restoreAllMocks();
    },
  );

  test('an error while the client goes away still reaches next once', async () => {
    let fail: (() => void) | undefined;
    const { url, errors } = await run(express, {
      ...BASE,
      keyFn: () =>
        new Promise((_done, reject) => {
          fail = () => reject(boom);
        }),
    });
    const { abort, gone } = cutShort(url);
    await until(() => fail !== undefined);
    abort();
    await gone;
    fail?.();
    await until(() => errors.length === 1);
    await pause(10);
    expect(errors).toEqual([boom]);
  });

  test('an answer of ours that a broken middleware cannot end is an error for next, also later', async () => {
    const store = new RemoteStore();
    const errors: unknown[] = [];
    const app = express();
    app.use((_req, res, next) => {
      const { end } = res;
      res.end = () => {
        res.end = end;
        throw boom;
      };
      next();
    });
    app.use(rateLimit({ ...BASE, limit: 0, store }));
    app.use(((error, _req, res, _next) => {
      errors.push(error);
      res.status(500).send('error page');
    }) as ErrorRequestHandler);
    expect((await call(await serve(app))).status).toBe(500);
    expect(errors).toEqual([boom]);
  });

  const junk = fc.oneof(
    fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
    }),
    fc.constantFrom(Symbol.iterator, () => 1, 2 ** 53, -0, [[]], new Proxy({}, {}), 'unlimited'),
    fc.record({ limit: fc.anything(), windowSec: fc.anything() }),
    fc.record({ limit: fc.nat(), windowSec: fc.double(), burst: fc.anything(), blockSec: fc.anything() }),
  );

  test.each(['keyFn', 'limit', 'plan', 'when', 'cost', 'skip', 'outcome', 'onLimited'])(
    'whatever %s answers, the request is answered once, and an error charges nothing',
    async option => {
      let value: () => unknown = () => undefined;
      const isRuleOption = !['skip', 'outcome', 'onLimited'].includes(option);
      const { get, errors, reached, store } = await run(express, {
        scope: 'test',
        ...(option === 'plan' ? {} : { limit: option === 'onLimited' ? 0 : 5, windowSec: 60 }),
        count: 'failures',
        outcome: byStatus,
        [option]: (_req: unknown, _res: unknown, next?: () => void) => {
          const answered = value();
          if (option === 'onLimited') next?.();
          return answered;
        },
      });
      await fc.assert(
        fc.asyncProperty(
          junk,
          fc.constantFrom(
            (given: unknown) => given,
            (given: unknown) => Promise.resolve(given),
          ),
          async (given, how) => {
            value = () => how(given);
            store.clear();
            errors.length = 0;
            reached.mockClear();
            const { status } = await get();
            expect([200, 429, 500]).toContain(status);
            expect(reached.mock.calls.length).toBe(status === 200 ? 1 : 0);
            expect(errors.length).toBe(status === 500 ? 1 : 0);
            if (status === 500) {
              expect(isRuleOption).toBe(true);
              expect(errors[0]?.code).toMatch(/^ERR_LIMITKEEPER_/);
              expect(errors[0]?.option).toBe(option);
              expect(store.size).toBe(0);
            }
          },
        ),
        { numRuns: 40 },
      );
    },
  );
});
