import { algorithms, floorDiv } from '../algorithms/index.js';
import type { CounterState } from '../algorithms/index.js';
import { blockForgettableAt, forgiveBlock, isStanding, setManualBlock, startBlock } from './block.js';
import type { Block } from './block.js';
import { CELL_VERSION, changeHolds, heldUnits, lapseTime } from './cell.js';
import type { Cell, Counter, Holds } from './cell.js';
import type { Reading, Reason } from './decision.js';
import { decides } from './operation.js';
import type { Batch, BatchItem } from './operation.js';
import type { Rule } from './rule.js';

export interface Outcome {
  /** One per item, in order. For an operation that does not decide: what `peek(0)` answers right after. */
  readonly readings: readonly Reading[];
  /** The cells as they now are, in order; `undefined` where nothing is left to store. The very object that was passed in where nothing changed. */
  readonly cells: readonly (Cell | undefined)[];
  /** The items whose automatic block started in this call. */
  readonly blockStarted: readonly number[];
}

/**
 * The specification of every decision, as one pure function: what each operation of the batch does to its cell at time
 * `now`, all or nothing over the enforced rules that decide. `cells[i]` is the cell of `batch[i]`.
 *
 * Total: it never throws for a batch made of checked rules and whole, non-negative amounts.
 */
export function decide(batch: Batch, cells: readonly (Cell | undefined)[], now: number): Outcome {
  const slots = batch.map((item, i) => new Slot(item.rule, cells[i], now));
  const reasons = batch.map((item, i) =>
    decides(item.operation) ? slots[i]?.verdict(item.operation.cost) : undefined,
  );
  const allowed = batch.every((item, i) => {
    const reason = reasons[i];
    return reason === undefined || reason === 'ok' || item.rule.shadow;
  });

  const readings: Reading[] = [];
  const blockStarted: number[] = [];
  slots.forEach((slot, i) => {
    const item = batch[i];
    if (item === undefined) return;
    const reason = reasons[i];
    const started = reason === undefined ? slot.apply(item) : slot.follow(item, reason, allowed);
    if (started) blockStarted.push(i);
    readings.push(slot.read(decides(item.operation) ? item.operation.cost : 0, reason));
  });
  return { readings, cells: slots.map(slot => slot.cell()), blockStarted };
}

/** Most cells have the one counter of their rule: no list is made for the others. */
const NO_COUNTERS: readonly Counter[] = [];

/** The cell of one rule while it is worked on: the counter that the rule counts in, and the block. */
class Slot {
  readonly #rule: Rule;
  readonly #now: number;
  readonly #stored: Cell | undefined;
  #state: CounterState | undefined;
  #holds: Holds = [];
  #block: Block | undefined;
  #others: readonly Counter[] = NO_COUNTERS;
  #changed = false;

  constructor(rule: Rule, cell: Cell | undefined, now: number) {
    this.#rule = rule;
    this.#now = now;
    this.#stored = cell;
    this.#block = cell?.block;
    for (const counter of cell?.counters ?? NO_COUNTERS) {
      if (counter.algorithm === rule.algorithm && counter.windowMs === rule.windowMs) {
        this.#state = counter.state;
        this.#holds = counter.holds;
      } else {
        this.#others = [...this.#others, counter];
      }
    }
  }

  get #algorithm() {
    return algorithms[this.#rule.algorithm];
  }

  /** Scaled by the window, like every amount that may be a fraction of a unit. */
  get #used(): number {
    return this.#algorithm.used(this.#state, this.#rule, this.#now);
  }

  /** The verdict of this rule alone. The order matters: a block hides the counter, an impossible cost starts no block. */
  verdict(cost: number): Reason {
    const { capacity } = this.#rule;
    if (isStanding(this.#block, this.#now)) return 'blocked';
    if (cost > capacity) return 'cost';
    const free = this.#freeUnits();
    if (cost > free) return 'limit';
    return cost > free - heldUnits(this.#holds, this.#now) ? 'held' : 'ok';
  }

  /** What a deciding operation does once the whole batch is decided. Answers whether a block started. */
  follow({ operation }: BatchItem, reason: Reason, allowed: boolean): boolean {
    if (!decides(operation) || operation.type === 'peek' || operation.cost === 0) return false;
    if (reason === 'limit') return this.#startBlock();
    if (reason !== 'ok' || !allowed) return false;
    if (operation.type === 'consume') this.#add(operation.cost);
    else this.#hold(lapseTime(this.#now, this.#rule.holdMs), operation.cost);
    return false;
  }

  /** An operation that asks nothing. Answers whether a block started. */
  apply({ operation }: BatchItem): boolean {
    switch (operation.type) {
      case 'settle':
        this.#hold(lapseTime(operation.at, this.#rule.holdMs), -operation.held);
        return this.#charge(operation.actual);
      case 'charge':
        return this.#charge(operation.units);
      case 'refund':
        if (this.#state !== undefined && operation.units > 0) {
          this.#state = this.#algorithm.refund(
            this.#state,
            this.#rule,
            this.#now,
            operation.at,
            operation.units,
          );
          this.#changed = true;
        }
        return false;
      case 'block':
        this.#setBlock(setManualBlock(this.#block, operation.ms, this.#now));
        return false;
      case 'unblock':
        this.#setBlock(undefined);
        return false;
      case 'reset':
        this.#forget(undefined);
        return false;
      case 'forgive':
        this.#forget(forgiveBlock(this.#block, this.#now));
        return false;
      default:
        return false;
    }
  }

  /** Adds past the capacity, up to twice the capacity: one huge charge must not lock a subject out for years. */
  #charge(units: number): boolean {
    if (units === 0) return false;
    const { capacity, windowMs } = this.#rule;
    const room = floorDiv(Math.max(0, 2 * capacity * windowMs - this.#used), windowMs);
    const added = Math.min(units, room);
    if (added > 0) this.#add(added);
    return this.#used >= capacity * windowMs && this.#startBlock();
  }

  #add(units: number): void {
    this.#state = this.#algorithm.add(this.#state, this.#rule, this.#now, units);
    this.#changed = true;
  }

  #hold(lapse: number, units: number): void {
    if (units === 0) return;
    this.#holds = changeHolds(this.#holds, lapse, units, this.#now);
    this.#changed = true;
  }

  /** Starts the automatic block, if the rule has one and none stands. */
  #startBlock(): boolean {
    const { blockMs } = this.#rule;
    if (blockMs.length === 0 || isStanding(this.#block, this.#now)) return false;
    this.#setBlock(startBlock(this.#block, blockMs, this.#now));
    return true;
  }

  #setBlock(block: Block | undefined): void {
    this.#block = block;
    this.#changed = true;
  }

  #forget(block: Block | undefined): void {
    this.#state = undefined;
    this.#holds = [];
    this.#others = NO_COUNTERS;
    this.#setBlock(block);
  }

  /** Whole units that fit beside those used, holds left aside; negative in debt. */
  #freeUnits(): number {
    const { capacity, windowMs } = this.#rule;
    const over = this.#used - capacity * windowMs;
    return over > 0 ? -floorDiv(over + windowMs - 1, windowMs) : floorDiv(-over, windowMs);
  }

  /** @param reason the verdict that stands; left out: that of a cost of 0 as things are now. */
  read(cost: number, reason: Reason = this.verdict(cost)): Reading {
    const { scope, capacity } = this.#rule;
    const blocked = isStanding(this.#block, this.#now);
    const remaining = blocked ? 0 : Math.max(0, this.#freeUnits() - heldUnits(this.#holds, this.#now));
    return {
      scope,
      allowed: reason === 'ok',
      reason,
      limit: capacity,
      remaining,
      retryAfterMs: reason === 'ok' ? 0 : this.#waitFor(cost),
      moreAfterMs: capacity === 0 ? null : remaining === capacity ? 0 : this.#waitFor(remaining + 1),
      resetAfterMs: this.#resetAfter(),
    };
  }

  #blockWait(): number | null {
    if (!isStanding(this.#block, this.#now)) return 0;
    return this.#block.until === null ? null : this.#block.until - this.#now;
  }

  /** The smallest wait after which `cost` would be ok. What is used and what is held only ever fall, if nothing happens. */
  #waitFor(cost: number): number | null {
    const block = this.#blockWait();
    if (block === null || cost > this.#rule.capacity) return null;
    let wait = block;
    let held = heldUnits(this.#holds, this.#now);
    const room = this.#rule.capacity - cost;
    // From one lapse time to the next the held units are constant: try each such span, the holds shrinking.
    for (let i = 0; i <= this.#holds.length; i += 2) {
      const lapse = this.#holds[i] ?? Infinity;
      if (lapse <= this.#now) continue;
      if (held <= room) {
        const fits = Math.max(wait, this.#usedWait(room - held));
        if (this.#now + fits < lapse) return fits;
      }
      held -= this.#holds[i + 1] ?? 0;
      wait = Math.max(wait, lapse - this.#now);
    }
    return wait;
  }

  #usedWait(target: number): number {
    return this.#state === undefined
      ? 0
      : this.#algorithm.waitFor(this.#state, this.#rule, this.#now, target);
  }

  #holdsWait(): number {
    const last = this.#holds[this.#holds.length - 2] ?? 0;
    return Math.max(0, last - this.#now);
  }

  #resetAfter(): number | null {
    const block = this.#blockWait();
    return block === null ? null : Math.max(block, this.#usedWait(0), this.#holdsWait());
  }

  /** The cell to store. Only a change writes, and only then what is dead is left out. */
  cell(): Cell | undefined {
    if (!this.#changed) return this.#stored;
    const now = this.#now;
    const counters = this.#others === NO_COUNTERS ? [] : this.#others.filter(c => c.until > now);
    const wait = Math.max(this.#usedWait(0), this.#holdsWait());
    if (wait > 0) counters.push(this.#counter(now + wait));
    const block =
      this.#block !== undefined && blockForgettableAt(this.#block) > now ? this.#block : undefined;
    if (block === undefined && counters.length === 0) return undefined;
    return block === undefined ? { v: CELL_VERSION, counters } : { v: CELL_VERSION, block, counters };
  }

  #counter(until: number): Counter {
    const { algorithm, windowMs } = this.#rule;
    const [state, holds] = [this.#state, this.#holds];
    // A counter whose used is 0 is no counter: the next unit starts afresh, whether a store remembered it or not.
    if (state === undefined || this.#used === 0) return { algorithm, windowMs, holds, until };
    return { algorithm, windowMs, state, holds, until };
  }
}
