import { performance } from 'node:perf_hooks';
import { Deadlines, Pending } from '../../src/core/deadline.js';
import { blockLoop, countTimers, sleep } from '../support/time.js';

const TIMEOUT = 120;

/** A call, and when it counted as late, in ms after it was made; `undefined` while it does not. */
class Call extends Pending {
  readonly start = performance.now();
  late: number | undefined = undefined;
  times = 0;
}

const watched = (timeoutMs: number): Deadlines<Call> =>
  new Deadlines<Call>(timeoutMs, call => {
    call.times += 1;
    call.late = performance.now() - call.start;
  });

function watch(deadlines: Deadlines<Call>): Call {
  const call = new Call();
  deadlines.watch(call, call.start);
  return call;
}

test('a call without a reply counts as late once, not before its deadline and soon after', async () => {
  const deadlines = watched(TIMEOUT);
  const calls = [watch(deadlines), watch(deadlines)];
  await sleep(TIMEOUT / 2);
  const later = watch(deadlines);
  await sleep(TIMEOUT * 4);
  for (const { late, times } of [...calls, later]) {
    expect(times).toBe(1);
    expect(late).toBeGreaterThanOrEqual(TIMEOUT);
    expect(late).toBeLessThan(4 * TIMEOUT);
  }
});

test('a call that was answered never counts as late, nor do those behind it wait longer', async () => {
  const deadlines = watched(TIMEOUT);
  const answered = watch(deadlines);
  const dead = watch(deadlines);
  const answeredLast = watch(deadlines);
  expect(deadlines.answered(answered)).toBe(true);
  await sleep(TIMEOUT / 2);
  expect(deadlines.answered(answeredLast)).toBe(true);
  await sleep(TIMEOUT * 3.5);
  expect([answered.times, dead.times, answeredLast.times]).toEqual([0, 1, 0]);
});

test('an answer that comes after the deadline, or a second one, is told to be late', async () => {
  const deadlines = watched(TIMEOUT);
  const [slow, quick] = [watch(deadlines), watch(deadlines)];
  expect([deadlines.answered(quick), deadlines.answered(quick)]).toEqual([true, false]);
  await sleep(TIMEOUT * 4);
  expect([slow.times, deadlines.answered(slow)]).toEqual([1, false]);
});

test('the queue goes to sleep and wakes up again', async () => {
  const deadlines = watched(TIMEOUT);
  deadlines.answered(watch(deadlines));
  await sleep(TIMEOUT);
  const immediates = jest.spyOn(globalThis, 'setImmediate');
  await sleep(TIMEOUT);
  expect(immediates).not.toHaveBeenCalled();
  immediates.mockRestore();
  const call = watch(deadlines);
  await sleep(TIMEOUT * 4);
  expect(call.times).toBe(1);
});

describe('a busy process is not a dead store', () => {
  test('a reply that waits while the event loop is blocked is in time', async () => {
    const deadlines = watched(TIMEOUT);
    const call = watch(deadlines);
    blockLoop(3 * TIMEOUT);
    // The request leaves only now, and is answered soon.
    await sleep(TIMEOUT / 4);
    expect(deadlines.answered(call)).toBe(true);
    await sleep(2 * TIMEOUT);
    expect(call.times).toBe(0);
  });

  test('also where the block begins when the timer had fired already, and nothing was looked at yet', async () => {
    const deadlines = watched(TIMEOUT);
    const call = watch(deadlines);
    // The same eighth as the timer of the deadlines: this runs right after it, before any setImmediate.
    setTimeout(() => {
      blockLoop(3 * TIMEOUT);
    }, TIMEOUT / 8);
    await sleep(TIMEOUT / 4);
    await sleep(TIMEOUT / 4);
    expect(call.times).toBe(0);
    expect(deadlines.answered(call)).toBe(true);
    await sleep(2 * TIMEOUT);
    expect(call.times).toBe(0);
  });

  test('and where it was busy before: what was not due when the timer fired waits for the next look', () => {
    let now = 0;
    let fire: () => void = () => {};
    let look: () => void = () => {};
    const timer = { unref: () => timer, refresh: () => timer };
    const mocks = [
      jest.spyOn(performance, 'now').mockImplementation(() => now),
      jest.spyOn(globalThis, 'setTimeout').mockImplementation(((tick: () => void) => {
        fire = tick;
        return timer;
      }) as never),
      jest.spyOn(globalThis, 'setImmediate').mockImplementation(((
        check: (at: number) => void,
        at: number,
      ) => {
        look = () => check(at);
      }) as never),
    ];
    const at = (fired: number, looked: number) => {
      now = fired;
      fire();
      now = looked;
      look();
    };
    try {
      const call = watch(watched(120));
      // Blocked until 500: the call has time until 620.
      at(500, 500);
      for (let time = 515; time < 600; time += 15) at(time, time);
      at(600, 604);
      // Due between the timer and the look, which something delays: nobody has read the socket since.
      at(619, 700);
      expect(call.times).toBe(0);
      at(715, 715);
      expect(call.times).toBe(1);
    } finally {
      for (const mock of mocks) mock.mockRestore();
    }
  });

  test('but a store that is dead as well is found out after one more time allowed', async () => {
    const deadlines = watched(TIMEOUT);
    const call = watch(deadlines);
    blockLoop(3 * TIMEOUT);
    await sleep(5 * TIMEOUT);
    expect(call.times).toBe(1);
    expect(call.late).toBeLessThan(8 * TIMEOUT);
  });

  test('however often the process is busy', async () => {
    const deadlines = watched(TIMEOUT);
    const call = watch(deadlines);
    for (let i = 0; i < 8 && call.times === 0; i += 1) {
      blockLoop(TIMEOUT);
      await sleep(1);
    }
    expect(call.times).toBe(1);
  });

  test('and calls made after the block have their own time', async () => {
    const deadlines = watched(TIMEOUT);
    const before = watch(deadlines);
    blockLoop(3 * TIMEOUT);
    const after = watch(deadlines);
    await sleep(TIMEOUT / 2);
    expect([before.times, after.times]).toEqual([0, 0]);
    await sleep(3.5 * TIMEOUT);
    expect([before.times, after.times]).toEqual([1, 1]);
    expect(after.late).toBeGreaterThanOrEqual(TIMEOUT);
  });
});

test('a thousand calls need one timer', async () => {
  const deadlines = watched(TIMEOUT);
  const timers = await countTimers(async () => {
    for (let i = 0; i < 1000; i += 1) {
      deadlines.answered(watch(deadlines));
      if (i % 100 === 0) await new Promise(setImmediate);
    }
  });
  expect(timers).toBe(1);
});
