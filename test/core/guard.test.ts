import vm from 'node:vm';
import { Guard } from '../../src/core/guard.js';
import { Check } from '../../src/core/check.js';
import type { LimitkeeperError } from '../../src/core/errors.js';
import type { Sequel } from '../../src/core/guard.js';
import type { Reading } from '../../src/core/decision.js';
import type { Operation } from '../../src/core/operation.js';
import { RuleTemplate } from '../../src/core/rule.js';
import type { Store } from '../../src/core/store.js';
import { hashSubject } from '../../src/core/subject.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { NOON } from '../support/decisions.js';
import { FaultyStore } from '../support/faulty-store.js';
import type { Fault } from '../support/faulty-store.js';
import { blockLoop, sleep } from '../support/time.js';

const TIMEOUT = 60;

const rule = new RuleTemplate({ scope: 'a' }).at({ limit: 100, windowSec: 60 });
const subject = hashSubject('alice', {});
const checkOf = (operation: Operation): Check => new Check(rule, subject, operation);
/** One request: each call has checks of its own. */
const asked = (): Check[] => [checkOf({ type: 'consume', cost: 1 })];

function guarded({ isAsync = true, timeoutMs = TIMEOUT } = {}) {
  const memory = new MemoryStore();
  const store = new FaultyStore(memory, { isAsync });
  const guard = new Guard(store, timeoutMs);
  return { memory, store, guard, left: () => leftIn(memory) };
}

function leftIn(memory: MemoryStore): number {
  const look = checkOf({ type: 'peek', cost: 0 });
  memory.decide([look]);
  return look.remaining;
}

type Answer =
  | { readonly ok: true; readonly checks: readonly Check[]; readonly at: number }
  | { readonly ok: false; readonly error: LimitkeeperError };

/** The guard's answer as it is. */
const asIs: Sequel<Answer> = {
  answered: (checks, at) => ({ ok: true, checks, at }),
  failed: (_checks, error) => ({ ok: false, error }),
};

const codeOf = (answer: Answer) => (answer.ok ? 'ok' : answer.error.code);

const atOnce = (guard: Guard, n: number): Promise<Answer[]> =>
  Promise.all(Array.from({ length: n }, async () => guard.run(asked(), asIs)));

async function codes(guard: Guard, n: number): Promise<string[]> {
  const seen: string[] = [];
  for (let i = 0; i < n; i += 1) seen.push(codeOf(await guard.run(asked(), asIs)));
  return seen;
}

const rejections: unknown[] = [];
const note = (reason: unknown) => rejections.push(reason);
beforeAll(() => process.on('unhandledRejection', note));
afterAll(() => process.off('unhandledRejection', note));
afterEach(async () => {
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(rejections.splice(0)).toEqual([]);
});

describe('an answer is a value', () => {
  test('at once from a store that answers at once, later from another', async () => {
    const sync = guarded({ isAsync: false }).guard.run(asked(), asIs);
    expect(sync).toMatchObject({ ok: true, checks: [{ remaining: 99 }] });
    const later = guarded().guard.run(asked(), asIs);
    expect(later).toBeInstanceOf(Promise);
    expect(await later).toMatchObject({ ok: true, checks: [{ remaining: 99 }] });
  });

  test('the store is told how long we wait', async () => {
    const store = new MemoryStore();
    const decide = jest.spyOn(store, 'decide');
    const checks = asked();
    await new Guard(store, 123).run(checks, asIs);
    expect(decide).toHaveBeenCalledWith(checks, 123);
  });
});

describe('whatever a store does becomes an error with a code, and never a throw or a rejection', () => {
  test.each<[string, Fault, string]>([
    ['throws', 'throws', 'the disk is full'],
    ['rejects', 'rejects', 'connection refused'],
  ])('it %s', async (_what, fault, text) => {
    for (const isAsync of [true, false]) {
      const { guard, store } = guarded({ isAsync });
      store.fault = fault;
      const answer = await guard.run(asked(), asIs);
      if (answer.ok) throw new Error('it was taken for an answer');
      expect(answer.error).toMatchObject({
        code: 'ERR_LIMITKEEPER_STORE',
        message: expect.stringContaining(text),
      });
      expect(answer.error.cause).toMatchObject({ message: text });
    }
  });

  const SOUND: Reading = {
    scope: 'a',
    allowed: true,
    reason: 'ok',
    limit: 100,
    remaining: 99,
    retryAfterMs: 0,
    moreAfterMs: 60_000,
    resetAfterMs: 60_000,
  };
  /** Answers `at`, and leaves a reading with what differs. */
  const leaves =
    (at: unknown, differs: Readonly<Record<string, unknown>> = {}) =>
    (checks: readonly Check[]): unknown => {
      for (const check of checks) check.take({ ...SOUND, ...(differs as Partial<Reading>) });
      return at;
    };

  test('what the faults below are made of is sound', async () => {
    const { guard, store } = guarded();
    store.fault = { answers: leaves(NOON) };
    expect(await guard.run(asked(), asIs)).toMatchObject({ ok: true, at: NOON, checks: [{ remaining: 99 }] });
  });

  test.each<[string, (checks: readonly Check[]) => unknown]>([
    ['nothing', leaves(undefined)],
    ['null', leaves(null)],
    ['true', leaves(true)],
    ['the answer of Redis', leaves('OK')],
    ['an empty object', leaves({})],
    ['the time as text', leaves(String(NOON))],
    ['the time as a big integer', leaves(BigInt(NOON))],
    ['a date', leaves(new Date(NOON))],
    ['a time that is none', leaves(NaN)],
    ['a broken time', leaves(1.5)],
    ['no end of time', leaves(Infinity)],
    ['a time without a reading', () => NOON],
    ['nothing at all', () => undefined],
    [
      'an empty reading',
      checks => (
        checks.forEach(check => {
          check.take({} as Reading);
        }),
        NOON
      ),
    ],
    ['no reason', leaves(NOON, { reason: undefined })],
    ['a reason as a number', leaves(NOON, { reason: 1 })],
    ['a reason that there is not', leaves(NOON, { reason: 'unavailable' })],
    ['no remaining', leaves(NOON, { remaining: undefined })],
    ['a remaining of null', leaves(NOON, { remaining: null })],
    ['a remaining of NaN', leaves(NOON, { remaining: NaN })],
    ['a remaining without end', leaves(NOON, { remaining: Infinity })],
    ['a negative remaining', leaves(NOON, { remaining: -1 })],
    ['remaining as text', leaves(NOON, { remaining: '5' })],
    ['a wait as text', leaves(NOON, { retryAfterMs: '0' })],
    ['no wait', leaves(NOON, { resetAfterMs: undefined })],
    ['a wait of NaN', leaves(NOON, { moreAfterMs: NaN })],
    ['a wait of NaN until the next try', leaves(NOON, { retryAfterMs: NaN })],
    ['a wait without end', leaves(NOON, { resetAfterMs: Infinity })],
  ])('it answers %s', async (_what, answers) => {
    for (const isAsync of [true, false]) {
      const { guard, store } = guarded({ isAsync });
      store.fault = { answers };
      const answer = await guard.run(asked(), asIs);
      if (answer.ok) throw new Error('it was taken for an answer');
      expect(answer.error).toMatchObject({
        code: 'ERR_LIMITKEEPER_STORE',
        message: expect.stringContaining(
          'it must answer the time, Unix ms, and leave a whole reading in each of 1 checks',
        ),
      });
    }
  });

  test.each<[string, (checks: readonly Check[]) => unknown, string]>([
    [
      'rejects with a text',
      () => ({ then: (_: unknown, reject: (reason: unknown) => void) => reject('gone') }),
      'ERR_LIMITKEEPER_STORE',
    ],
    [
      'rejects with nothing',
      () => ({ then: (_: unknown, reject: (reason: unknown) => void) => reject(undefined) }),
      'ERR_LIMITKEEPER_STORE',
    ],
    [
      'answers a thenable whose then throws',
      () => ({
        then: () => {
          throw new Error('broken then');
        },
      }),
      'ERR_LIMITKEEPER_STORE',
    ],
    [
      'answers a thenable that calls back at once, twice',
      checks => (
        leaves(NOON)(checks),
        {
          then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
            resolve(NOON);
            reject(new Error('after all'));
          },
        }
      ),
      'ok',
    ],
    [
      'answers something whose then cannot be read',
      () => Object.defineProperty({}, 'then', { get: () => assertNever() }),
      'ERR_LIMITKEEPER_STORE',
    ],
  ])('it %s', async (_what, decide, code) => {
    const store = Object.assign(new MemoryStore(), { decide }) as unknown as Store;
    expect(codeOf(await new Guard(store, TIMEOUT).run(asked(), asIs))).toBe(code);
  });

  test('an error of another realm keeps its message', async () => {
    const store = new MemoryStore();
    store.decide = () => vm.runInNewContext('throw new TypeError("socket hang up")') as never;
    const answer = await new Guard(store, TIMEOUT).run(asked(), asIs);
    expect(answer).toMatchObject({ error: { message: expect.stringContaining('socket hang up') } });
  });
});

function assertNever(): never {
  throw new Error('cannot be read');
}

describe('what cannot even be read is a failure, and a probe that meets it ends', () => {
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const makeUnreadable = (value: object, name: string): object =>
    Object.defineProperty(value, name, { get: () => assertNever() });

  test.each<[string, (checks: readonly Check[]) => unknown]>([
    ...(['remaining', 'repeated'] as const).map((name): [string, (checks: readonly Check[]) => unknown] => [
      `a check whose ${name} throws`,
      checks => {
        const at = new MemoryStore().decide(checks);
        for (const check of checks) makeUnreadable(check, name);
        return at;
      },
    ]),
    ['an answer that is a revoked proxy', () => revoked.proxy],
    [
      'an error whose message throws',
      () => {
        throw makeUnreadable({}, 'message') as Error;
      },
    ],
    [
      'an error that is a revoked proxy',
      () => {
        throw revoked.proxy as Error;
      },
    ],
  ])('%s', async (_what, odd) => {
    for (const isAsync of [false, true]) {
      const memory = new MemoryStore();
      let isOdd = true;
      const plain = (checks: readonly Check[]): unknown => (isOdd ? odd(checks) : memory.decide(checks));
      const decide = isAsync ? (checks: readonly Check[]) => Promise.resolve(checks).then(plain) : plain;
      const guard = new Guard(Object.assign(new MemoryStore(), { decide }), TIMEOUT);
      expect(await codes(guard, 6)).toEqual([
        ...Array<string>(5).fill('ERR_LIMITKEEPER_STORE'),
        'ERR_LIMITKEEPER_STORE_SUSPENDED',
      ]);
      await sleep(1050);
      expect(await codes(guard, 2)).toEqual(['ERR_LIMITKEEPER_STORE', 'ERR_LIMITKEEPER_STORE_SUSPENDED']);
      isOdd = false;
      await sleep(1050);
      expect(await codes(guard, 2)).toEqual(['ok', 'ok']);
    }
  });
});

describe('the deadline', () => {
  test('a store that never answers costs the time allowed, and little more', async () => {
    const { guard, store } = guarded();
    store.fault = 'hangs';
    const start = performance.now();
    expect(codeOf(await guard.run(asked(), asIs))).toBe('ERR_LIMITKEEPER_STORE_TIMEOUT');
    const took = performance.now() - start;
    expect(took).toBeGreaterThanOrEqual(TIMEOUT);
    expect(took).toBeLessThan(4 * TIMEOUT);
  });

  test('a slow answer within it is an answer', async () => {
    const { guard, store, left } = guarded({ timeoutMs: 400 });
    store.fault = { slowMs: 50 };
    expect(codeOf(await guard.run(asked(), asIs))).toBe('ok');
    expect(left()).toBe(99);
  });

  test.each(['succeeds', 'rejects'] as const)('a late reply that %s is thrown away', async how => {
    const { guard, store } = guarded();
    store.fault = 'hangs';
    const seen = (await atOnce(guard, 4)).map(codeOf);
    expect(seen).toEqual(Array<string>(4).fill('ERR_LIMITKEEPER_STORE_TIMEOUT'));
    store.fault = how === 'rejects' ? 'rejects' : undefined;
    store.thaw();
    await sleep(10);
    // Neither a success (which would begin the count anew) nor further failures: this is the fifth in a row.
    store.fault = 'rejects';
    expect(codeOf(await guard.run(asked(), asIs))).toBe('ERR_LIMITKEEPER_STORE');
    expect(codeOf(await guard.run(asked(), asIs))).toBe('ERR_LIMITKEEPER_STORE_SUSPENDED');
  });

  test('late rejections do not count as further failures', async () => {
    const { guard, store } = guarded();
    store.fault = 'hangs';
    await atOnce(guard, 3);
    store.fault = 'rejects';
    store.thaw();
    await sleep(10);
    expect(codeOf(await guard.run(asked(), asIs))).toBe('ERR_LIMITKEEPER_STORE');
    store.fault = undefined;
    expect(codeOf(await guard.run(asked(), asIs))).toBe('ok');
  });

  test('an answer that waits while the process is busy is in time', async () => {
    const { guard, store } = guarded();
    store.fault = { slowMs: 5 };
    const answer = guard.run(asked(), asIs);
    blockLoop(4 * TIMEOUT);
    expect(codeOf(await answer)).toBe('ok');
  });
});

describe('the breaker', () => {
  const FAILED = 'ERR_LIMITKEEPER_STORE';
  const SUSPENDED = 'ERR_LIMITKEEPER_STORE_SUSPENDED';

  test('five failures in a row: the store is left alone for a second, then one probe finds it well', async () => {
    const { guard, store, left } = guarded();
    store.fault = 'rejects';
    expect(await codes(guard, 7)).toEqual([...Array<string>(5).fill(FAILED), SUSPENDED, SUSPENDED]);
    expect(store.calls).toBe(5);
    store.fault = { slowMs: 20 };
    await sleep(1050);
    const probe = guard.run(asked(), asIs);
    expect(await codes(guard, 3)).toEqual([SUSPENDED, SUSPENDED, SUSPENDED]);
    expect(store.calls).toBe(6);
    expect(codeOf(await probe)).toBe('ok');
    expect(await codes(guard, 2)).toEqual(['ok', 'ok']);
    expect(left()).toBe(97);
  });

  test('a probe that hangs ends with its deadline, and another second begins', async () => {
    const { guard, store } = guarded();
    store.fault = 'throws';
    await codes(guard, 5);
    store.fault = 'hangs';
    await sleep(1050);
    expect(await codes(guard, 2)).toEqual(['ERR_LIMITKEEPER_STORE_TIMEOUT', SUSPENDED]);
    store.fault = undefined;
    await sleep(1050);
    expect(await codes(guard, 2)).toEqual(['ok', 'ok']);
  });

  test('belongs to the store: what one limiter learns, another need not pay for', async () => {
    const { guard, store } = guarded();
    const other = new Guard(store, 500);
    store.fault = 'rejects';
    await codes(guard, 3);
    expect(await codes(other, 3)).toEqual([FAILED, FAILED, SUSPENDED]);
    expect(await codes(guard, 1)).toEqual([SUSPENDED]);
    const elsewhere = guarded().guard;
    expect(await codes(elsewhere, 1)).toEqual(['ok']);
  });

  test('answers that are none open it, too', async () => {
    const { guard, store } = guarded({ isAsync: false });
    store.fault = { answers: () => undefined };
    expect(await codes(guard, 6)).toEqual([...Array<string>(5).fill(FAILED), SUSPENDED]);
  });

  describe('what a store repeats from memory says nothing of whether it lives', () => {
    const repeated = {
      answers: (checks: readonly Check[]): number => {
        const at = new MemoryStore().decide(checks);
        for (const check of checks) check.repeated = true;
        return at;
      },
    };

    test('it ends no row of failures', async () => {
      const { guard, store } = guarded({ isAsync: false });
      const seen: string[] = [];
      for (const fault of ['throws', 'throws', 'throws', 'throws', repeated, 'throws', 'throws'] as const) {
        store.fault = fault;
        seen.push(...(await codes(guard, 1)));
      }
      expect(seen).toEqual([...Array<string>(4).fill(FAILED), 'ok', FAILED, SUSPENDED]);
    });

    test('and is no probe: the next call is', async () => {
      const { guard, store } = guarded({ isAsync: false });
      store.fault = 'throws';
      await codes(guard, 5);
      await sleep(1050);
      store.fault = repeated;
      expect(await codes(guard, 2)).toEqual(['ok', 'ok']);
      store.fault = 'throws';
      expect(await codes(guard, 2)).toEqual([FAILED, SUSPENDED]);
    });
  });

  test('a hundred calls that hang together cost one deadline, and then none', async () => {
    const { guard, store } = guarded();
    store.fault = 'hangs';
    const start = performance.now();
    await atOnce(guard, 100);
    expect(performance.now() - start).toBeLessThan(4 * TIMEOUT);
    expect(await codes(guard, 100)).toEqual(Array<string>(100).fill(SUSPENDED));
    expect(store.calls).toBe(100);
  });
});

test('the very checks that were asked go on, with the time that the store answered', () => {
  const clock = new FakeClock(NOON);
  const checks = asked();
  const answer = new Guard(new MemoryStore({ clock }), TIMEOUT).run(checks, asIs) as Answer & { ok: true };
  expect(answer.checks).toBe(checks);
  expect(answer.at).toBe(NOON);
});
