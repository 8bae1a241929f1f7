import { NONE } from './algorithm.js';
import type { Algorithm, AlgorithmRule, Registers } from './algorithm.js';

/**
 * `log`: `[time, units, time, units, …]` in order of time, one entry for all units of one millisecond; `b`: the sum of all
 * its units, so that a full log is not added up at each request. A unit counts while `time > now − W`, so exactly L pass in
 * any span of W. The log is as long as the limit, hence limit ≤ 1,000.
 *
 * What is over stays at the head until the next unit comes.
 */
function firstLive({ log }: Registers, rule: AlgorithmRule, now: number): number {
  let i = 0;
  while (i < log.length && timeAt(log, i) <= now - rule.windowMs) i += 2;
  return i;
}

const timeAt = (log: readonly number[], i: number): number => log[i] ?? 0;
const unitsAt = (log: readonly number[], i: number): number => log[i + 1] ?? 0;

/** The units of the entries before `end`. */
function sumBefore(log: readonly number[], end: number): number {
  let sum = 0;
  for (let i = 0; i < end; i += 2) sum += unitsAt(log, i);
  return sum;
}

function dropDead(registers: Registers, rule: AlgorithmRule, now: number): void {
  const first = firstLive(registers, rule, now);
  if (first === 0) return;
  registers.b -= sumBefore(registers.log, first);
  registers.log.splice(0, first);
}

export const slidingLog: Algorithm = {
  used(registers, rule, now) {
    const { log, b } = registers;
    return (b - sumBefore(log, firstLive(registers, rule, now))) * rule.windowMs;
  },

  add(registers, rule, now, units) {
    if (registers.a === NONE) {
      registers.a = 0;
      registers.b = units;
      registers.log = [now, units];
      return;
    }
    dropDead(registers, rule, now);
    const { log } = registers;
    // After a clock was set back, `now` may belong before entries that stand already: the log stays in order.
    let i = log.length;
    while (i > 0 && timeAt(log, i - 2) > now) i -= 2;
    if (i > 0 && timeAt(log, i - 2) === now) log[i - 1] = unitsAt(log, i - 2) + units;
    else if (i === log.length) log.push(now, units);
    else log.splice(i, 0, now, units);
    registers.b += units;
  },

  refund(registers, rule, now, at, units) {
    dropDead(registers, rule, now);
    const { log } = registers;
    for (let i = 0; i < log.length; i += 2) {
      if (timeAt(log, i) !== at) continue;
      const given = Math.min(units, unitsAt(log, i));
      registers.b -= given;
      if (given < unitsAt(log, i)) log[i + 1] = unitsAt(log, i) - given;
      else log.splice(i, 2);
      break;
    }
  },

  waitFor({ log, b }, rule, now, target) {
    // Nothing is used once the newest entry is over: no need to add up those before it.
    let i = target === 0 ? log.length - 2 : 0;
    let left = target === 0 ? 0 : b - unitsAt(log, 0);
    while (left > target) {
      i += 2;
      left -= unitsAt(log, i);
    }
    return timeAt(log, i) + rule.windowMs - now;
  },

  load(registers, state) {
    registers.a = 0;
    registers.log = [...state];
    registers.b = sumBefore(state, state.length);
  },

  save: ({ log }) => [...log],
};
