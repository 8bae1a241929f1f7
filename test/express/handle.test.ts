import type { Request, Response } from 'express';
import type * as Library from 'limitkeeper';
import { byStatus, getRateLimit, MemoryStore, rateLimit } from 'limitkeeper';
import type { RateLimitHandle, RateLimitOptions, RuleOptions } from 'limitkeeper';
import { FakeClock } from 'limitkeeper/testing';
import { call, closeServers, EXPRESSES, pause, serve } from '../support/http.js';
import type { Reply } from '../support/http.js';
import { RemoteStore, STORES } from '../support/stores.js';

afterEach(closeServers);

/** 2025-12-01T10:43:00.000Z, a whole minute. */
const START = 1_764_585_780_000;
const alice = { limit: 10, windowSec: 60, algorithm: 'fixed-window', keyFn: () => 'alice' } as const;

describe.each(EXPRESSES)('%s', (_name, express) => {
  describe.each(STORES)('with %s', (_s, makeStore) => {
    /** What the handler sees and does, in an app with these limiters; every rule is alice's. */
    async function handled(
      options: readonly (Partial<RuleOptions> | { rules: RuleOptions[] })[],
      handler: (limit: RateLimitHandle, res: Response, req: Request) => unknown,
    ): Promise<{ reply: Reply; left: () => Promise<(number | undefined)[]> }> {
      const store = makeStore(new FakeClock(START));
      const limiters = options.map(option =>
        rateLimit({
          ...('rules' in option ? {} : alice),
          outcome: byStatus,
          store,
          ...option,
        } as unknown as RateLimitOptions),
      );
      const app = express();
      let failed: unknown;
      app.use(...limiters, (req: Request, res: Response) => {
        void (async () => {
          try {
            await handler(getRateLimit(req), res, req);
          } catch (error) {
            failed = error;
          }
          if (!res.writableEnded) res.send('ok');
        })();
      });
      const reply = await call(await serve(app));
      if (failed !== undefined) throw failed as Error;
      const left = async () => {
        const readings = await Promise.all(
          limiters.map(async ({ limiter }) => (await limiter.peek('alice')).readings),
        );
        return readings.flat().map(({ remaining }) => remaining);
      };
      return { reply, left };
    }

    test('decision is the tightest so far', async () => {
      await handled(
        [
          { scope: 'a', limit: 9 },
          { scope: 'b', limit: 3 },
          { scope: 'c', limit: 5 },
        ],
        ({ decision }) => {
          expect(decision).toMatchObject({
            allowed: true,
            reason: 'ok',
            scope: 'b',
            limit: 3,
            remaining: 2,
            at: START,
          });
          expect(decision.readings.map(({ scope }) => scope)).toEqual(['b']);
          expect(JSON.parse(JSON.stringify(decision))).toEqual(decision);
        },
      );
    });

    test('one that refuses is tighter than any that allows, whatever remains', async () => {
      let seen: unknown;
      await handled(
        [
          {
            scope: 'dear',
            limit: 10,
            cost: 11,
            onLimited: (_req: unknown, _res: unknown, next: () => void) => next(),
          },
          { scope: 'cheap', limit: 3 },
        ] as never,
        ({ decision }) => {
          seen = [decision.allowed, decision.scope, decision.reason, decision.remaining];
        },
      );
      expect(seen).toEqual([false, 'dear', 'cost', 10]);
    });

    test('without a limiter everything is allowed, and there is no scope', async () => {
      await handled([], async limit => {
        expect(limit.decision).toMatchObject({
          allowed: true,
          scope: null,
          limit: null,
          remaining: null,
          readings: [],
        });
        await limit.settle(5);
        expect(() => limit.scope('a')).toThrow(
          expect.objectContaining({
            code: 'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
            message: expect.stringContaining('none'),
          }),
        );
      });
    });

    test('asked before it has decided, by its own keyFn, a scope has no reading; the handler sees one', async () => {
      const early: unknown[] = [];
      const keyFn = (req: Request): string => {
        early.push(getRateLimit(req).scope('a').reading);
        return 'alice';
      };
      let remaining: number | undefined;
      await handled([{ scope: 'a', keyFn }], limit => {
        remaining = limit.scope('a').reading?.remaining;
      });
      expect(early).toEqual([undefined]);
      expect(remaining).toBe(9);
    });

    test('an unknown scope is an error that names those there are', async () => {
      await handled([{ scope: 'a' }, { scope: 'b' }], async limit => {
        expect(() => limit.scope('c')).toThrow(
          expect.objectContaining({
            code: 'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
            message: expect.stringContaining('a, b'),
          }),
        );
        await expect(limit.settle({ c: 1 })).rejects.toMatchObject({ code: 'ERR_LIMITKEEPER_UNKNOWN_SCOPE' });
      });
    });

    test.each<readonly [string, object]>([
      ['skipped', { skip: () => true }],
      ['absent (when)', { when: () => false }],
      ['unlimited', { plan: () => 'unlimited', limit: undefined, windowSec: undefined }],
      ['off', { mode: 'off' }],
    ])('a scope that is %s has no reading, and operations on it do nothing', async (_what, option) => {
      const { reply } = await handled([{ scope: 'a', ...option }, { scope: 'b' }], async limit => {
        const a = limit.scope('a');
        expect(a.reading).toBeUndefined();
        for (const done of [a.forgive(), a.reset(), a.block(5), a.unblock(), a.charge(5), a.refund()]) {
          await expect(done).resolves.toBeUndefined();
        }
        expect(limit.decision.scope).toBe('b');
      });
      expect(reply.headers).toMatchObject({ 'x-ratelimit-remaining': '9', ratelimit: '"b";r=9;t=60' });
    });

    test('a scope shows its reading, and each operation answers the one after it', async () => {
      const seen: unknown[] = [];
      const { reply, left } = await handled([{ scope: 'a', blockSec: 900 }, { scope: 'b' }], async limit => {
        const a = limit.scope('a');
        const note = (reading: typeof a.reading) => {
          expect(a.reading).toEqual(reading);
          seen.push([reading?.reason, reading?.remaining]);
        };
        note(a.reading);
        note(await a.charge(4));
        note(await a.refund());
        note(await a.refund());
        note(await a.block(30));
        note(await a.unblock());
        note(await a.reset());
        note(await a.charge(10));
        note(await a.forgive());
        note(await a.charge(25));
        note(await a.charge(1));
        expect(limit.decision).toMatchObject({
          allowed: false,
          scope: 'a',
          reason: 'blocked',
          retryAfterMs: 900_000,
        });
      });
      expect(seen).toEqual([
        ['ok', 9],
        ['ok', 5],
        ['ok', 6],
        ['ok', 6],
        ['blocked', 0],
        ['ok', 6],
        ['ok', 10],
        ['blocked', 0],
        ['ok', 10],
        // Twice the capacity at most, and the block began with the charge.
        ['blocked', 0],
        ['blocked', 0],
      ]);
      // What the handler did is told in the headers of its answer.
      expect(reply.headers['retry-after']).toBe('900');
      expect(await left()).toEqual([0, 9]);
    });

    test("block('forever') has no end, and a success leaves it", async () => {
      const { reply } = await handled([{ scope: 'a', resetOnSuccess: true }], async limit => {
        await limit.scope('a').charge(5);
        const reading = await limit.scope('a').block('forever');
        expect([reading?.retryAfterMs, reading?.resetAfterMs]).toEqual([null, null]);
      });
      expect([reply.status, reply.headers['x-ratelimit-remaining'], reply.headers['retry-after']]).toEqual([
        200,
        '0',
        undefined,
      ]);
    });

    test.each<readonly [string, (limit: RateLimitHandle) => Promise<unknown>, string]>([
      ['block(0)', limit => limit.scope('a').block(0), 'ERR_LIMITKEEPER_OPTION_RANGE'],
      ['block(NaN)', limit => limit.scope('a').block(NaN), 'ERR_LIMITKEEPER_OPTION_RANGE'],
      ["block('5')", limit => limit.scope('a').block('5' as never), 'ERR_LIMITKEEPER_OPTION_TYPE'],
      ['charge(-1)', limit => limit.scope('a').charge(-1), 'ERR_LIMITKEEPER_COST'],
      ['charge(0.5)', limit => limit.scope('a').charge(0.5), 'ERR_LIMITKEEPER_COST'],
      ['refund(-1)', limit => limit.scope('a').refund(-1), 'ERR_LIMITKEEPER_COST'],
      ['settle(-1)', limit => limit.settle(-1), 'ERR_LIMITKEEPER_COST'],
      ['settle({ a: NaN })', limit => limit.settle({ a: NaN }), 'ERR_LIMITKEEPER_COST'],
      ['settle(undefined)', limit => limit.settle(undefined as never), 'ERR_LIMITKEEPER_COST'],
      ['settle(null)', limit => limit.settle(null as never), 'ERR_LIMITKEEPER_COST'],
    ])('%s is a mistake, and changes nothing', async (_what, act, code) => {
      const { left } = await handled([{ scope: 'a', reserve: true }], async limit => {
        await expect(act(limit)).rejects.toMatchObject({ code });
        expect(limit.scope('a').reading).toMatchObject({ reason: 'ok', remaining: 9 });
      });
      expect(await left()).toEqual([9]);
    });

    describe('settle', () => {
      const reserved = { scope: 'a', limit: 1000, cost: 800, reserve: true } as const;

      test('takes the real cost in place of the estimate, once', async () => {
        const { reply, left } = await handled([reserved], async limit => {
          expect(limit.decision.remaining).toBe(200);
          await limit.settle(612);
          expect(limit.decision.remaining).toBe(388);
          await limit.settle(5);
          await limit.settle(0);
        });
        expect(reply.headers['x-ratelimit-remaining']).toBe('388');
        expect(await left()).toEqual([388]);
      });

      test('two at once: the first counts', async () => {
        const { left } = await handled([reserved], async limit => {
          await Promise.all([limit.settle(100), limit.settle(200)]);
        });
        expect(await left()).toEqual([900]);
      });

      test('0 releases it', async () => {
        const { left } = await handled([reserved], limit => limit.settle(0));
        expect(await left()).toEqual([1000]);
      });

      test('more than was held goes into debt, to twice the limit at most', async () => {
        const { left, reply } = await handled([reserved], async limit => {
          await limit.settle(5000);
          expect(limit.scope('a').reading).toMatchObject({ remaining: 0, reason: 'limit' });
        });
        expect(await left()).toEqual([0]);
        expect(reply.headers['retry-after']).toBe('60');
      });

      test('not waited for by the handler, it is still what counts', async () => {
        const { left } = await handled([reserved], limit => void limit.settle(10));
        await pause(20);
        expect(await left()).toEqual([990]);
      });

      test('S4: after the answer has left it corrects what the end has charged, once', async () => {
        const { left } = await handled([reserved], async (limit, res) => {
          res.send('early');
          await pause(30);
          await limit.settle(1);
          await limit.settle(500);
        });
        await pause(50);
        expect(await left()).toEqual([999]);
      });

      test('by scope, each its own; the scope that is not named is charged its estimate', async () => {
        const { left } = await handled(
          [
            {
              rules: [
                { ...alice, scope: 'in', cost: 5, reserve: true },
                { ...alice, scope: 'out', cost: 5, reserve: true },
                { ...alice, scope: 'other', cost: 5, reserve: true },
                { ...alice, scope: 'requests' },
              ],
            },
          ],
          async limit => {
            await limit.settle({ in: 1, out: 2 });
            await expect(limit.settle({ requests: 2 })).rejects.toMatchObject({
              code: 'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
            });
          },
        );
        expect(await left()).toEqual([9, 8, 5, 9]);
      });

      test('reaches the reservations of every limiter on the way', async () => {
        const { left } = await handled(
          [
            { scope: 'a', cost: 5, reserve: true },
            { scope: 'b', cost: 5, reserve: true },
          ],
          limit => limit.settle(3),
        );
        expect(await left()).toEqual([7, 7]);
      });

      test.each([
        [401, 8],
        [200, 10],
      ])('of a rule that counts failures, an answer of %i leaves %i', async (status, expected) => {
        const { left } = await handled(
          [{ scope: 'a', cost: 5, reserve: true, count: 'failures' }],
          async (limit, res) => {
            await limit.settle(2);
            await limit.settle(4);
            res.status(status).end();
          },
        );
        expect(await left()).toEqual([expected]);
      });
    });

    test('refund gives back what the request took, or less, and no more', async () => {
      for (const [units, expected] of [
        [undefined, 10],
        [3, 9],
        [0, 6],
        [9, 10],
      ] as const) {
        const { left } = await handled([{ scope: 'a', limit: 20, cost: 4 }], async limit => {
          await limit.scope('a').charge(10);
          await limit.scope('a').refund(units);
        });
        expect([units, await left()]).toEqual([units, [expected]]);
      }
    });

    test('refund also after the answer has left, beside a rule that is settled then', async () => {
      const { left } = await handled(
        [
          {
            rules: [
              { ...alice, scope: 'jobs', cost: 4 },
              { ...alice, scope: 'bad', count: 'failures' },
            ],
          },
        ],
        async (limit, res) => {
          res.status(200).send('accepted');
          await pause(30);
          await limit.scope('jobs').refund();
        },
      );
      await pause(50);
      expect(await left()).toEqual([10, 10]);
    });

    test('refund of a reservation, or of a rule that has taken nothing, does nothing', async () => {
      const { left } = await handled(
        [
          { scope: 'a', reserve: true, cost: 4 },
          { scope: 'b', count: 'failures', strict: false },
        ],
        async limit => {
          await limit.scope('a').refund();
          await limit.scope('b').refund();
        },
      );
      expect(await left()).toEqual([6, 10]);
    });

    test('after a captcha the handler resets the limit by hand', async () => {
      const { left } = await handled([{ scope: 'a', cost: 7 }], limit => limit.scope('a').reset());
      expect(await left()).toEqual([10]);
    });
  });

  test('a store that fails leaves the reading as it was, and nothing is thrown', async () => {
    const store = new RemoteStore();
    const app = express();
    app.use(rateLimit({ ...alice, scope: 'a', store }), async (req, res) => {
      store.behaviour = 'reject';
      const limit = getRateLimit(req);
      const reading = await limit.scope('a').charge(3);
      await limit.settle(3);
      res.json([reading?.remaining, limit.decision.remaining]);
    });
    expect((await call(await serve(app))).body).toBe('[9,9]');
  });

  test('anything but a request is a mistake', () => {
    for (const value of [undefined, null, 'req', 5]) {
      expect(() => getRateLimit(value as never)).toThrow(
        expect.objectContaining({ code: 'ERR_LIMITKEEPER_OPTION_TYPE' }),
      );
    }
  });

  test('two copies of the library in one process see the same request', async () => {
    const copy = await otherCopy();
    expect(copy.getRateLimit).not.toBe(getRateLimit);
    const app = express();
    app.use(copy.rateLimit({ ...alice, scope: 'a', limit: 5, store: new copy.MemoryStore() }));
    app.use(rateLimit({ ...alice, scope: 'b', limit: 3, store: new MemoryStore() }));
    app.use((req, res) => {
      const seen = [getRateLimit(req), copy.getRateLimit(req)];
      expect(seen[0]?.scope('a').reading?.remaining).toBe(4);
      res.json(seen.map(({ decision }) => [decision.scope, decision.remaining]));
    });
    const reply = await call(await serve(app));
    expect(reply.body).toBe('[["b",2],["b",2]]');
    expect(reply.headers['ratelimit-policy']).toBe('"a";q=5;w=60, "b";q=3;w=60');
  });

  test("a copy's refusal is one for the other, too", async () => {
    const copy = await otherCopy();
    const store = new MemoryStore();
    const counting = rateLimit({ ...alice, scope: 'a', count: 'failures', outcome: byStatus, store });
    const app = express();
    app.use(counting, copy.rateLimit({ ...alice, scope: 'b', limit: 0, store: new copy.MemoryStore() }));
    expect((await call(await serve(app))).status).toBe(429);
    expect((await counting.limiter.peek('alice')).remaining).toBe(10);
  });
});

/** The library loaded once more, as the CommonJS build beside the ESM one. */
async function otherCopy(): Promise<typeof Library> {
  let copy: typeof Library | undefined;
  await jest.isolateModulesAsync(async () => {
    copy = await import('limitkeeper');
  });
  return copy!;
}
