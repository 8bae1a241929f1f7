import { floorDiv, NONE } from './algorithm.js';
import type { Algorithm } from './algorithm.js';

/**
 * `a`: start of the current window, `b`: units in it, `c`: units in the one before, which count by the share of that window
 * that a window ending now would still cover: `c × (W − elapsed) / W + b`. Once a window has passed since `a`, the current
 * one is the previous one; once two have, nothing is left.
 *
 * At most max(L, 2L − 2) units pass in any span of W; the worst case needs the previous window's units to lie at its very
 * start, so that in practice it stays close to L.
 */
export const slidingWindow: Algorithm = {
  used(registers, { windowMs }, now) {
    const { a, b, c } = registers;
    const elapsed = now - a;
    if (elapsed < windowMs) return c * (elapsed > 0 ? windowMs - elapsed : windowMs) + b * windowMs;
    return elapsed < 2 * windowMs ? b * (2 * windowMs - elapsed) : 0;
  },

  add(registers, { windowMs }, now, units) {
    const elapsed = now - registers.a;
    if (registers.a === NONE || elapsed >= 2 * windowMs) {
      registers.a = now;
      registers.b = units;
      registers.c = 0;
      return;
    }
    if (elapsed >= windowMs) {
      registers.a += windowMs;
      registers.c = registers.b;
      registers.b = 0;
    }
    // Nothing used is no counter: the first window starts now.
    if (registers.b === 0 && registers.c === 0) registers.a = now;
    registers.b += units;
  },

  refund(registers, { windowMs }, now, at, units) {
    const elapsed = now - registers.a;
    if (elapsed >= 2 * windowMs) return;
    const start = elapsed < windowMs ? registers.a : registers.a + windowMs;
    if (at >= start + windowMs || at < start - windowMs) return;
    if (start > registers.a) {
      registers.a = start;
      registers.c = registers.b;
      registers.b = 0;
    }
    if (at >= start) registers.b = Math.max(0, registers.b - units);
    else registers.c = Math.max(0, registers.c - units);
  },

  waitFor(registers, { windowMs }, now, target) {
    const isOver = now - registers.a >= windowMs;
    const start = isOver ? registers.a + windowMs : registers.a;
    const current = isOver ? 0 : registers.b;
    // Within this window only the previous one fades: previous × (W − elapsed) ≤ (target − current) × W.
    if (current <= target) {
      const previous = isOver ? registers.b : registers.c;
      return start + windowMs - floorDiv((target - current) * windowMs, previous) - now;
    }
    // The current units alone are too many: they must become the previous window and fade there.
    return start + 2 * windowMs - floorDiv(target * windowMs, current) - now;
  },

  load(registers, [start = 0, current = 0, previous = 0]) {
    registers.a = start;
    registers.b = current;
    registers.c = previous;
  },

  save: ({ a, b, c }) => [a, b, c],
};
