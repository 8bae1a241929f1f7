import type { Operation } from '../../src/core/operation.js';
import type { Reading, Reason } from '../../src/core/decision.js';
import type { Rule } from '../../src/core/rule.js';

/** A fraction, never rounded. */
interface Fraction {
  readonly n: bigint;
  readonly d: bigint;
}

const whole = (units: number): Fraction => ({ n: BigInt(units), d: 1n });
const plus = (a: Fraction, b: Fraction): Fraction => ({ n: a.n * b.d + b.n * a.d, d: a.d * b.d });
const minus = (a: Fraction, b: Fraction): Fraction => plus(a, { n: -b.n, d: b.d });
const atLeastZero = (a: Fraction): Fraction => (a.n < 0n ? whole(0) : a);
const isAbove = (a: Fraction, b: Fraction): boolean => a.n * b.d > b.n * a.d;
const floor = (a: Fraction): number => Number(a.n >= 0n ? a.n / a.d : -((-a.n + a.d - 1n) / a.d));

const DAY = 86_400_000n;
/** No wait is longer (the longest debt takes 2^53 ms to leak away): beyond it, the answer is never. */
const LONGEST = 2n ** 54n;

/**
 * The semantics page told a second time, for one rule and one subject, with fractions of big integers in the place of scaled
 * numbers, big integers for times too, one entry per unit in the log, and waits found by trying, not by formulas. Slow, and
 * written for reading only. Time moves forwards.
 */
export class Model {
  readonly #rule: Rule;
  #counter: Counter;
  #holds = new Map<bigint, number>();
  #block: { until: bigint | null; manual: boolean; strikes: number } | undefined;

  constructor(rule: Rule) {
    this.#rule = rule;
    this.#counter = new COUNTERS[rule.algorithm](rule);
  }

  apply(operation: Operation, time: number): Reading {
    const now = BigInt(time);
    switch (operation.type) {
      case 'peek':
        return this.#read(operation.cost, this.#verdict(operation.cost, now), now);
      case 'consume':
      case 'reserve': {
        const { type, cost } = operation;
        const reason = this.#verdict(cost, now);
        if (reason === 'limit' && cost > 0) this.#startBlock(now);
        if (reason === 'ok' && cost > 0) {
          if (type === 'consume') this.#counter.add(now, cost);
          else this.#hold(this.#lapse(now), cost);
        }
        return this.#read(cost, reason, now);
      }
      case 'charge':
        this.#charge(operation.units, now);
        break;
      case 'settle': {
        const lapse = this.#lapse(BigInt(operation.at));
        if (lapse > now) this.#hold(lapse, -operation.held);
        this.#charge(operation.actual, now);
        break;
      }
      case 'refund':
        if (operation.units > 0) this.#counter.refund(now, BigInt(operation.at), operation.units);
        break;
      case 'block': {
        const until = operation.ms === null ? null : now + BigInt(operation.ms);
        this.#block = { until, manual: true, strikes: this.#strikes(now) };
        break;
      }
      case 'unblock':
        this.#block = undefined;
        break;
      case 'reset':
        this.#forget();
        this.#block = undefined;
        break;
      case 'forgive': {
        this.#forget();
        const stays = this.#isBlocked(now) && this.#block?.manual === true;
        this.#block = stays && this.#block !== undefined ? { ...this.#block, strikes: 0 } : undefined;
        break;
      }
    }
    return this.#read(0, this.#verdict(0, now), now);
  }

  #verdict(cost: number, at: bigint): Reason {
    const capacity = whole(this.#rule.capacity);
    if (this.#isBlocked(at)) return 'blocked';
    if (cost > this.#rule.capacity) return 'cost';
    const wanted = plus(this.#counter.used(at), whole(cost));
    if (isAbove(wanted, capacity)) return 'limit';
    return isAbove(plus(wanted, whole(this.#held(at))), capacity) ? 'held' : 'ok';
  }

  #read(cost: number, reason: Reason, now: bigint): Reading {
    const { scope, capacity } = this.#rule;
    const free = floor(minus(minus(whole(capacity), this.#counter.used(now)), whole(this.#held(now))));
    const remaining = this.#isBlocked(now) ? 0 : Math.max(0, free);
    const waitFor = (n: number) => smallestWait(wait => this.#verdict(n, now + wait) === 'ok');
    return {
      scope,
      allowed: reason === 'ok',
      reason,
      limit: capacity,
      remaining,
      retryAfterMs: reason === 'ok' ? 0 : waitFor(cost),
      moreAfterMs: capacity === 0 ? null : remaining === capacity ? 0 : waitFor(remaining + 1),
      resetAfterMs: smallestWait(wait => {
        const at = now + wait;
        return this.#counter.used(at).n === 0n && this.#held(at) === 0 && !this.#isBlocked(at);
      }),
    };
  }

  #charge(units: number, now: bigint): void {
    const { capacity } = this.#rule;
    const room = floor(minus(whole(2 * capacity), this.#counter.used(now)));
    const added = Math.min(units, Math.max(0, room));
    if (added > 0) this.#counter.add(now, added);
    if (units > 0 && !isAbove(whole(capacity), this.#counter.used(now))) this.#startBlock(now);
  }

  #isBlocked(at: bigint): boolean {
    return this.#block !== undefined && (this.#block.until === null || at < this.#block.until);
  }

  #strikes(now: bigint): number {
    if (this.#block === undefined) return 0;
    const { until, strikes } = this.#block;
    return until !== null && now >= until + DAY ? 0 : strikes;
  }

  #startBlock(now: bigint): void {
    const { blockMs } = this.#rule;
    if (blockMs.length === 0 || this.#isBlocked(now)) return;
    const strikes = this.#strikes(now);
    const rung = blockMs[Math.min(strikes, blockMs.length - 1)]!;
    this.#block = { until: now + BigInt(rung), manual: false, strikes: strikes + 1 };
  }

  #lapse(at: bigint): bigint {
    const holdMs = BigInt(this.#rule.holdMs);
    return (at / holdMs + 2n) * holdMs;
  }

  #hold(lapse: bigint, units: number): void {
    this.#holds.set(lapse, Math.max(0, (this.#holds.get(lapse) ?? 0) + units));
  }

  #held(at: bigint): number {
    let sum = 0;
    for (const [lapse, units] of this.#holds) if (lapse > at) sum += units;
    return sum;
  }

  #forget(): void {
    this.#counter = new COUNTERS[this.#rule.algorithm](this.#rule);
    this.#holds = new Map();
  }
}

/** The smallest whole wait for which `holds`, which once true stays true. */
function smallestWait(holds: (wait: bigint) => boolean): number | null {
  if (holds(0n)) return 0;
  let low = 0n;
  let high = 1n;
  for (; !holds(high); high *= 2n) {
    if (high > LONGEST) return null;
    low = high;
  }
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (holds(middle)) high = middle;
    else low = middle;
  }
  return Number(high);
}

interface Counter {
  used(at: bigint): Fraction;
  add(now: bigint, units: number): void;
  refund(now: bigint, at: bigint, units: number): void;
}

class FixedWindow implements Counter {
  #start = 0n;
  #count = 0;
  readonly #window: bigint;
  constructor(readonly rule: Rule) {
    this.#window = BigInt(rule.windowMs);
  }

  used(at: bigint): Fraction {
    return whole(at < this.#start + this.#window ? this.#count : 0);
  }

  add(now: bigint, units: number): void {
    if (this.used(now).n === 0n) {
      this.#start = this.rule.align === 'epoch' ? now - (now % this.#window) : now;
      this.#count = 0;
    }
    this.#count += units;
  }

  refund(now: bigint, at: bigint, units: number): void {
    const end = this.#start + this.#window;
    if (now < end && at >= this.#start && at < end) this.#count = Math.max(0, this.#count - units);
  }
}

class SlidingWindow implements Counter {
  /** Units by window: those of number k were counted from `#anchor + k × W` on. */
  #anchor = 0n;
  #windows = new Map<bigint, number>();
  readonly #window: bigint;
  constructor(rule: Rule) {
    this.#window = BigInt(rule.windowMs);
  }

  /** Division of big integers rounds towards zero: what lies before the anchor is rounded by hand, all of it to window −1. */
  #number(at: bigint): bigint {
    return at < this.#anchor ? -1n : (at - this.#anchor) / this.#window;
  }

  used(at: bigint): Fraction {
    const w = this.#window;
    const k = this.#number(at);
    const left = w - (at - this.#anchor - k * w);
    const fading = { n: BigInt(this.#windows.get(k - 1n) ?? 0) * left, d: w };
    return plus(fading, whole(this.#windows.get(k) ?? 0));
  }

  add(now: bigint, units: number): void {
    if (this.used(now).n === 0n) {
      this.#anchor = now;
      this.#windows = new Map();
    }
    const k = this.#number(now);
    this.#windows.set(k, (this.#windows.get(k) ?? 0) + units);
  }

  refund(now: bigint, at: bigint, units: number): void {
    const k = this.#number(at);
    if (k < this.#number(now) - 1n) return;
    if (this.#windows.has(k)) this.#windows.set(k, Math.max(0, this.#windows.get(k)! - units));
  }
}

class SlidingLog implements Counter {
  #times: bigint[] = [];
  readonly #window: bigint;
  constructor(rule: Rule) {
    this.#window = BigInt(rule.windowMs);
  }

  used(at: bigint): Fraction {
    return whole(this.#times.filter(time => time > at - this.#window).length);
  }

  add(now: bigint, units: number): void {
    for (let i = 0; i < units; i += 1) this.#times.push(now);
  }

  refund(_now: bigint, at: bigint, units: number): void {
    for (let i = 0; i < units; i += 1) {
      const index = this.#times.indexOf(at);
      if (index >= 0) this.#times.splice(index, 1);
    }
  }
}

class Bucket implements Counter {
  #level = whole(0);
  #at = 0n;
  constructor(readonly rule: Rule) {}

  #leaked(ms: bigint): Fraction {
    return { n: ms * BigInt(this.rule.limit), d: BigInt(this.rule.windowMs) };
  }

  used(at: bigint): Fraction {
    return atLeastZero(minus(this.#level, this.#leaked(at - this.#at)));
  }

  add(now: bigint, units: number): void {
    this.#set(plus(this.used(now), whole(units)), now);
  }

  refund(now: bigint, at: bigint, units: number): void {
    const left = atLeastZero(minus(whole(units), this.#leaked(now - at)));
    this.#set(atLeastZero(minus(this.used(now), left)), now);
  }

  #set(level: Fraction, now: bigint): void {
    // Over the window as denominator, or the fractions grow with every step.
    const w = BigInt(this.rule.windowMs);
    this.#level = { n: (level.n * w) / level.d, d: w };
    this.#at = now;
  }
}

const COUNTERS = {
  'fixed-window': FixedWindow,
  'sliding-window': SlidingWindow,
  'sliding-log': SlidingLog,
  'token-bucket': Bucket,
  'leaky-bucket': Bucket,
};
