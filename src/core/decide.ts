import { algorithms, floorDiv, NONE } from '../algorithms/index.js';
import type { Algorithm } from '../algorithms/index.js';
import { blockForgettableAt, forgiveBlock, isStanding, setManualBlock, startBlock } from './block.js';
import type { Block } from './block.js';
import { changeHolds, heldUnits, lapseTime, NO_HOLDS } from './cell.js';
import type { Reason } from './decision.js';
import { decides } from './operation.js';
import type { Check } from './check.js';

/**
 * The specification of every decision, as one function that reads nothing but its arguments: what each operation does to
 * the registers of its check at time `now`, all or nothing over the enforced rules that decide. Each check is left with its
 * reading; for an operation that does not decide it is what `peek(0)` answers right after.
 *
 * Total: it never throws for checked rules and whole, non-negative amounts.
 */
export function decide(checks: readonly Check[], now: number): void {
  let allowed = true;
  for (const check of checks) {
    check.used = check.a === NONE ? 0 : counting(check).used(check, check.rule, now);
    const { operation, rule } = check;
    if (!decides(operation)) continue;
    check.reason = verdict(check, operation.cost, now);
    if (check.reason !== 'ok' && !rule.shadow) allowed = false;
  }
  for (const check of checks) {
    if (decides(check.operation)) {
      const { cost, type } = check.operation;
      if (type !== 'peek' && cost > 0) follow(check, type, cost, allowed, now);
      read(check, cost, now);
    } else {
      apply(check, now);
      check.reason = verdict(check, 0, now);
      read(check, 0, now);
    }
    if (check.changed) dropDead(check, now);
  }
}

const counting = (check: Check): Algorithm => algorithms[check.rule.algorithm];

/**
 * The verdict of this rule alone. The order matters: a block hides the counter, an impossible cost starts no block. "Used +
 * cost exceed the capacity" is said without a product beyond 2^53: the cost is at most the capacity by then.
 */
function verdict({ rule, block, used, holds }: Check, cost: number, now: number): Reason {
  const room = rule.capacity - cost;
  if (isStanding(block, now)) return 'blocked';
  if (room < 0) return 'cost';
  if (used > room * rule.windowMs) return 'limit';
  return holds !== NO_HOLDS && used > (room - heldUnits(holds, now)) * rule.windowMs ? 'held' : 'ok';
}

/** What a deciding operation does once all are decided. */
function follow(
  check: Check,
  type: 'consume' | 'reserve',
  cost: number,
  allowed: boolean,
  now: number,
): void {
  if (check.reason === 'limit') startAutomaticBlock(check, now);
  else if (check.reason === 'ok' && allowed) {
    if (type === 'consume') add(check, cost, now);
    else hold(check, lapseTime(now, check.rule.holdMs), cost, now);
  }
}

/** An operation that asks nothing. */
function apply(check: Check, now: number): void {
  const { operation, rule, block } = check;
  switch (operation.type) {
    case 'settle':
      hold(check, lapseTime(operation.at, rule.holdMs), -operation.held, now);
      charge(check, operation.actual, now);
      break;
    case 'charge':
      charge(check, operation.units, now);
      break;
    case 'refund':
      refund(check, operation.at, operation.units, now);
      break;
    case 'block':
      setBlock(check, setManualBlock(block, operation.ms, now));
      break;
    case 'unblock':
      setBlock(check, undefined);
      break;
    case 'reset':
      forget(check, undefined);
      break;
    case 'forgive':
      forget(check, forgiveBlock(block, now));
      break;
    default:
      // What decides was followed already.
      break;
  }
}

function add(check: Check, units: number, now: number): void {
  counting(check).add(check, check.rule, now, units);
  check.used += units * check.rule.windowMs;
  check.changed = true;
}

/** Adds past the capacity, up to twice the capacity: one huge charge must not lock a subject out for years. */
function charge(check: Check, units: number, now: number): void {
  if (units === 0) return;
  const { windowMs, capacity } = check.rule;
  const full = capacity * windowMs;
  const added = Math.min(units, floorDiv(Math.max(0, 2 * full - check.used), windowMs));
  if (added > 0) add(check, added, now);
  if (check.used >= full) startAutomaticBlock(check, now);
}

function refund(check: Check, at: number, units: number, now: number): void {
  if (check.a === NONE || units === 0) return;
  const algorithm = counting(check);
  algorithm.refund(check, check.rule, now, at, units);
  check.used = algorithm.used(check, check.rule, now);
  check.changed = true;
}

function hold(check: Check, lapse: number, units: number, now: number): void {
  if (units === 0) return;
  check.holds = changeHolds(check.holds, lapse, units, now);
  check.changed = true;
}

/** Starts the automatic block, if the rule has one and none stands. */
function startAutomaticBlock(check: Check, now: number): void {
  const { blockMs } = check.rule;
  if (blockMs.length === 0 || isStanding(check.block, now)) return;
  setBlock(check, startBlock(check.block, blockMs, now));
  check.blockStarted = true;
}

function setBlock(check: Check, block: Block | undefined): void {
  check.block = block;
  check.changed = true;
}

function forget(check: Check, block: Block | undefined): void {
  check.a = NONE;
  check.used = 0;
  check.holds = NO_HOLDS;
  check.forgotten = true;
  setBlock(check, block);
}

/** Leaves the reading of a check whose verdict stands. */
function read(check: Check, cost: number, now: number): void {
  const { rule, used, holds, block } = check;
  const { capacity, windowMs } = rule;
  const blockMs = blockWait(block, now);
  let remaining = 0;
  if (blockMs === 0 && used < capacity * windowMs) {
    remaining = floorDiv(capacity * windowMs - used, windowMs);
    if (holds !== NO_HOLDS) remaining = Math.max(0, remaining - heldUnits(holds, now));
  }
  check.remaining = remaining;
  check.retryAfterMs = check.reason === 'ok' ? 0 : waitFor(check, capacity - cost, blockMs, now);
  if (capacity === 0) check.moreAfterMs = null;
  else {
    check.moreAfterMs = remaining === capacity ? 0 : waitFor(check, capacity - remaining - 1, blockMs, now);
  }
  let keepMs = usedWait(check, 0, now);
  if (holds !== NO_HOLDS) keepMs = Math.max(keepMs, (holds[holds.length - 2] ?? 0) - now);
  check.keepMs = keepMs;
  check.resetAfterMs = blockMs === null ? null : Math.max(blockMs, keepMs);
}

/** `null`: for ever; 0: none stands. */
function blockWait(block: Block | undefined, now: number): number | null {
  if (!isStanding(block, now)) return 0;
  return block.until === null ? null : block.until - now;
}

/**
 * The smallest wait after which `room` units have space for what is used and held, and which is not shorter than the block.
 * What is used and what is held only ever fall, if nothing happens.
 */
function waitFor(check: Check, room: number, blockMs: number | null, now: number): number | null {
  if (blockMs === null || room < 0) return null;
  const { holds } = check;
  if (holds === NO_HOLDS) return Math.max(blockMs, usedWait(check, room, now));
  let wait = blockMs;
  let held = heldUnits(holds, now);
  // From one lapse time to the next the held units are constant: try each such span, the holds shrinking.
  for (let i = 0; i <= holds.length; i += 2) {
    const lapse = holds[i] ?? Infinity;
    if (lapse <= now) continue;
    if (held <= room) {
      const fits = Math.max(wait, usedWait(check, room - held, now));
      if (now + fits < lapse) return fits;
    }
    held -= holds[i + 1] ?? 0;
    wait = Math.max(wait, lapse - now);
  }
  return wait;
}

/** The wait until at most `target` units are used. */
function usedWait(check: Check, target: number, now: number): number {
  const { rule, used } = check;
  return used > target * rule.windowMs ? counting(check).waitFor(check, rule, now, target) : 0;
}

/** Only a change writes, and only then what is dead is left out. A counter whose used is 0 is no counter. */
function dropDead(check: Check, now: number): void {
  if (check.used === 0) check.a = NONE;
  if (check.block !== undefined && blockForgettableAt(check.block) <= now) check.block = undefined;
}
