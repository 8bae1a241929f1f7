import type { Algorithm, AlgorithmRule, CounterState } from './algorithm.js';

/**
 * `[time, units, time, units, …]` in order of time: one entry for all units of one millisecond. A unit counts while
 * `time > now − W`, so exactly L pass in any span of W. The log is as long as the limit, hence limit ≤ 1,000.
 */
function live(log: CounterState, rule: AlgorithmRule, now: number): CounterState {
  const first = firstLive(log, rule, now);
  return first === 0 ? log : log.slice(first);
}

function firstLive(log: CounterState, rule: AlgorithmRule, now: number): number {
  let i = 0;
  while (i < log.length && timeAt(log, i) <= now - rule.windowMs) i += 2;
  return i;
}

const timeAt = (log: CounterState, i: number): number => log[i] ?? 0;
const unitsAt = (log: CounterState, i: number): number => log[i + 1] ?? 0;

function sumFrom(log: CounterState, first: number): number {
  let sum = 0;
  for (let i = first; i < log.length; i += 2) sum += unitsAt(log, i);
  return sum;
}

export const slidingLog: Algorithm = {
  used(state, rule, now) {
    return state === undefined ? 0 : sumFrom(state, firstLive(state, rule, now)) * rule.windowMs;
  },

  add(state, rule, now, units) {
    const log = state === undefined ? [] : [...live(state, rule, now)];
    // After a clock was set back, `now` may belong before entries that stand already: the log stays in order.
    let i = log.length;
    while (i > 0 && timeAt(log, i - 2) > now) i -= 2;
    if (i > 0 && timeAt(log, i - 2) === now) log[i - 1] = unitsAt(log, i - 2) + units;
    else log.splice(i, 0, now, units);
    return log;
  },

  refund(state, rule, now, at, units) {
    const log = [...live(state, rule, now)];
    for (let i = 0; i < log.length; i += 2) {
      if (timeAt(log, i) !== at) continue;
      const left = unitsAt(log, i) - units;
      if (left > 0) log[i + 1] = left;
      else log.splice(i, 2);
      break;
    }
    return log;
  },

  waitFor(state, rule, now, target) {
    let i = firstLive(state, rule, now);
    let sum = sumFrom(state, i);
    let wait = 0;
    for (; sum > target; i += 2) {
      sum -= unitsAt(state, i);
      wait = timeAt(state, i) + rule.windowMs - now;
    }
    return wait;
  },
};
