import vm from 'node:vm';
import { Guard } from '../../src/core/guard.js';
import type { Answer } from '../../src/core/guard.js';
import type { MaybePromise } from '../../src/core/maybe-promise.js';
import type { Batch } from '../../src/core/operation.js';
import { RuleTemplate } from '../../src/core/rule.js';
import type { BatchResult, Store } from '../../src/core/store.js';
import { hashSubject } from '../../src/core/subject.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { FaultyStore } from '../support/faulty-store.js';
import type { Fault } from '../support/faulty-store.js';
import { blockLoop, sleep } from '../support/time.js';

const TIMEOUT = 60;

const rule = new RuleTemplate({ scope: 'a' }).at({ limit: 100, windowSec: 60 });
const subject = hashSubject('alice', {});
const batch: Batch = [{ rule, subject, operation: { type: 'consume', cost: 1 } }];
const look: Batch = [{ rule, subject, operation: { type: 'peek', cost: 0 } }];

function guarded({ isAsync = true, timeoutMs = TIMEOUT } = {}) {
  const memory = new MemoryStore();
  const store = new FaultyStore(memory, { isAsync });
  const guard = new Guard(store, timeoutMs);
  return { memory, store, guard, left: () => memory.apply(look).readings[0]?.remaining };
}

/** The guard's answer as it is. */
const asIs = (answer: Answer): Answer => answer;

const codeOf = (answer: Answer) => (answer.ok ? 'ok' : answer.error.code);

const atOnce = (guard: Guard, n: number): Promise<Answer[]> =>
  Promise.all(Array.from({ length: n }, async () => guard.run(batch, asIs)));

async function codes(guard: Guard, n: number): Promise<string[]> {
  const seen: string[] = [];
  for (let i = 0; i < n; i += 1) seen.push(codeOf(await guard.run(batch, asIs)));
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
    const sync = guarded({ isAsync: false }).guard.run(batch, asIs);
    expect(sync).toMatchObject({ ok: true, result: { readings: [{ remaining: 99 }] } });
    const later = guarded().guard.run(batch, asIs);
    expect(later).toBeInstanceOf(Promise);
    expect(await later).toMatchObject({ ok: true, result: { readings: [{ remaining: 99 }] } });
  });

  test('the store is told how long we wait', async () => {
    const store = new MemoryStore();
    const apply = jest.spyOn(store, 'apply');
    await new Guard(store, 123).run(batch, asIs);
    expect(apply).toHaveBeenCalledWith(batch, 123);
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
      const answer = await guard.run(batch, asIs);
      if (answer.ok) throw new Error('it was taken for an answer');
      expect(answer.error).toMatchObject({
        code: 'ERR_LIMITKEEPER_STORE',
        message: expect.stringContaining(text),
      });
      expect(answer.error.cause).toMatchObject({ message: text });
    }
  });

  const sound = new MemoryStore().apply(batch);
  const [reading] = sound.readings;

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a number', 1],
    ['the answer of Redis', 'OK'],
    ['an empty object', {}],
    ['no readings', { ...sound, readings: undefined }],
    ['too few readings', { ...sound, readings: [] }],
    ['too many readings', { ...sound, readings: [reading, reading] }],
    ['a reading that is none', { ...sound, readings: [undefined] }],
    ['a reading of null', { ...sound, readings: [null] }],
    ['an empty reading', { ...sound, readings: [{}] }],
    ['allowed as a number', { ...sound, readings: [{ ...reading, allowed: 1 }] }],
    ['no remaining', { ...sound, readings: [{ ...reading, remaining: undefined }] }],
    ['a limit of NaN', { ...sound, readings: [{ ...reading, limit: NaN }] }],
    ['a wait as text', { ...sound, readings: [{ ...reading, retryAfterMs: '0' }] }],
    ['no wait', { ...sound, readings: [{ ...reading, resetAfterMs: undefined }] }],
    ['a wait of NaN', { ...sound, readings: [{ ...reading, moreAfterMs: NaN }] }],
    ['no time', { ...sound, at: undefined }],
    ['a time that is none', { ...sound, at: NaN }],
    ['a broken time', { ...sound, at: 1.5 }],
    ['no list of blocks', { ...sound, blockStarted: undefined }],
  ])('it answers %s', async (_what, answers) => {
    for (const isAsync of [true, false]) {
      const { guard, store } = guarded({ isAsync });
      store.fault = { answers };
      const answer = await guard.run(batch, asIs);
      if (answer.ok) throw new Error('it was taken for an answer');
      expect(answer.error).toMatchObject({
        code: 'ERR_LIMITKEEPER_STORE',
        message: expect.stringContaining('{ at, readings, blockStarted }'),
      });
    }
  });

  test.each<[string, () => unknown, string]>([
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
      () => ({
        then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
          resolve(sound);
          reject(new Error('after all'));
        },
      }),
      'ok',
    ],
    [
      'answers something whose then cannot be read',
      () => Object.defineProperty({}, 'then', { get: () => assertNever() }),
      'ERR_LIMITKEEPER_STORE',
    ],
  ])('it %s', async (_what, apply, code) => {
    const store = Object.assign(new MemoryStore(), { apply }) as unknown as Store;
    expect(codeOf(await new Guard(store, TIMEOUT).run(batch, asIs))).toBe(code);
  });

  test('an error of another realm keeps its message', async () => {
    const store = new MemoryStore();
    store.apply = () => vm.runInNewContext('throw new TypeError("socket hang up")') as never;
    const answer = await new Guard(store, TIMEOUT).run(batch, asIs);
    expect(answer).toMatchObject({ error: { message: expect.stringContaining('socket hang up') } });
  });
});

function assertNever(): never {
  throw new Error('cannot be read');
}

describe('what cannot even be read is a failure, and a probe that meets it ends', () => {
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const unreadable = (name: string): object => Object.defineProperty({}, name, { get: () => assertNever() });

  test.each<[string, () => unknown]>([
    ['an answer with readings that throw', () => unreadable('readings')],
    [
      'an answer whose repeated throws',
      () =>
        Object.defineProperty({ ...new MemoryStore().apply(batch) }, 'repeated', {
          get: () => assertNever(),
        }),
    ],
    ['an answer that is a revoked proxy', () => revoked.proxy],
    [
      'an error whose message throws',
      () => {
        throw unreadable('message') as Error;
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
      const plain = (items: Batch): unknown => (isOdd ? odd() : memory.apply(items));
      const apply = isAsync ? (items: Batch) => Promise.resolve(items).then(plain) : plain;
      const guard = new Guard(Object.assign(new MemoryStore(), { apply }), TIMEOUT);
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
    expect(codeOf(await guard.run(batch, asIs))).toBe('ERR_LIMITKEEPER_STORE_TIMEOUT');
    const took = performance.now() - start;
    expect(took).toBeGreaterThanOrEqual(TIMEOUT);
    expect(took).toBeLessThan(4 * TIMEOUT);
  });

  test('a slow answer within it is an answer', async () => {
    const { guard, store, left } = guarded({ timeoutMs: 400 });
    store.fault = { slowMs: 50 };
    expect(codeOf(await guard.run(batch, asIs))).toBe('ok');
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
    expect(codeOf(await guard.run(batch, asIs))).toBe('ERR_LIMITKEEPER_STORE');
    expect(codeOf(await guard.run(batch, asIs))).toBe('ERR_LIMITKEEPER_STORE_SUSPENDED');
  });

  test('late rejections do not count as further failures', async () => {
    const { guard, store } = guarded();
    store.fault = 'hangs';
    await atOnce(guard, 3);
    store.fault = 'rejects';
    store.thaw();
    await sleep(10);
    expect(codeOf(await guard.run(batch, asIs))).toBe('ERR_LIMITKEEPER_STORE');
    store.fault = undefined;
    expect(codeOf(await guard.run(batch, asIs))).toBe('ok');
  });

  test('an answer that waits while the process is busy is in time', async () => {
    const { guard, store } = guarded();
    store.fault = { slowMs: 5 };
    const answer = guard.run(batch, asIs);
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
    const probe = guard.run(batch, asIs);
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
    store.fault = { answers: undefined };
    expect(await codes(guard, 6)).toEqual([...Array<string>(5).fill(FAILED), SUSPENDED]);
  });

  describe('what a store repeats from memory says nothing of whether it lives', () => {
    const repeated = { answers: { ...new MemoryStore().apply(batch), repeated: true } };

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

test('a sound result passes as the very object that the store answered', () => {
  const result = { ...new MemoryStore().apply(batch) };
  const store = Object.assign(new MemoryStore(), { apply: (): MaybePromise<BatchResult> => result });
  const answer = new Guard(store, TIMEOUT).run(batch, asIs);
  expect((answer as Extract<Answer, { ok: true }>).result).toBe(result);
});
