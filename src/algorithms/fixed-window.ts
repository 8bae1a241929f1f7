import { NONE } from './algorithm.js';
import type { Algorithm, AlgorithmRule, Registers } from './algorithm.js';

/**
 * `a`: start, `b`: count. The window runs while `now < start + W`.
 *
 * At most 2 × limit units pass in any span of W: one limit just before a window's end, one just after.
 */
function isRunning(registers: Registers, rule: AlgorithmRule, now: number): boolean {
  return now < registers.a + rule.windowMs;
}

export const fixedWindow: Algorithm = {
  used(registers, rule, now) {
    return isRunning(registers, rule, now) ? registers.b * rule.windowMs : 0;
  },

  add(registers, rule, now, units) {
    // A count of 0 (all refunded) is no counter: its window is over, too.
    if (registers.a !== NONE && registers.b > 0 && isRunning(registers, rule, now)) {
      registers.b += units;
      return;
    }
    registers.a = rule.align === 'epoch' ? now - (now % rule.windowMs) : now;
    registers.b = units;
  },

  refund(registers, rule, now, at, units) {
    const isCountedHere = at >= registers.a && at < registers.a + rule.windowMs;
    if (isCountedHere && isRunning(registers, rule, now)) registers.b = Math.max(0, registers.b - units);
  },

  waitFor(registers, rule, now) {
    return registers.a + rule.windowMs - now;
  },

  load(registers, [start = 0, count = 0]) {
    registers.a = start;
    registers.b = count;
  },

  save: ({ a, b }) => [a, b],
};
