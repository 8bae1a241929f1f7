import type { Check } from '../core/check.js';
import type { RuleReading } from '../core/decision.js';
import type { Operation } from '../core/operation.js';
import type { RequestRule } from './options.js';

/** What one rule did in one request, where more than its check is asked for. */
export class RuleRun {
  readonly rule: RequestRule;
  /** As it was asked. */
  readonly check: Check;
  readonly cost: number;
  /** The latest: after the decision, then after whatever the handler or the outcome did. */
  reading: RuleReading | undefined;
  /** The decision took the cost: it was consumed, or is on hold. */
  readonly taken: boolean;
  /** It counted: the cost was consumed or is on hold for good, or the outcome was charged. */
  charged: boolean;
  /** The decision found that this rule refuses (in shadow mode: would). */
  readonly refused: boolean;
  /** The real cost, where the handler has settled it. */
  actual: number | undefined = undefined;
  /** The hold was settled, or the consumed units were given back: once. */
  spent = false;
  /**
   * What the end of the request charged as an estimate, and the store's time of it (`undefined` while it is under way, and
   * where the store failed): a handler that learns the real cost later corrects it.
   */
  estimate: { readonly units: number; at: number | undefined } | undefined = undefined;

  /** @param decided `undefined` where the store failed and nobody counted */
  constructor(rule: RequestRule, check: Check, decided: Check | undefined, allowed: boolean) {
    const { operation } = check;
    this.rule = rule;
    this.check = check;
    this.cost = 'cost' in operation ? operation.cost : 0;
    this.reading = decided?.described;
    this.refused = decided?.allowed === false;
    this.taken = allowed && decided?.allowed === true && operation.type !== 'peek';
    this.charged = this.taken && rule.count === 'all';
  }

  /**
   * Takes how things stand after an effect. Its answer is read for a cost of 0: of a block of a minute in a window of an hour
   * it says "a minute". The client comes back with a request that costs something and must be told when that passes, or they
   * wait as told, are refused again, and start the next block. For a cost above 1 this is when the first unit fits; more is
   * not known here.
   */
  take(reading: RuleReading | undefined): void {
    const isNext = reading === undefined || reading.allowed || this.cost === 0;
    this.reading = isNext ? reading : { ...reading, retryAfterMs: reading.moreAfterMs };
  }
}

/** Does it count units, whatever was held before? */
export function charges(operation: Operation): boolean {
  return (
    (operation.type === 'charge' && operation.units > 0) ||
    (operation.type === 'settle' && operation.actual > 0)
  );
}
