import { nodeCrypto } from './builtin.js';
import type { Check } from './check.js';
import { bindingOf, fold, uncounted } from './decision.js';
import type { Decision, Receipt, ReceiptEntry } from './decision.js';
import type { FailMode } from './events.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Receipts are told apart across processes; the counter makes them cheap. */
let receiptPrefix: string | undefined;
let receipts = 0;

/**
 * The checks of one call, decided. What a caller sees of it, the {@link Decision} as plain data, is made when somebody asks:
 * most requests need no more than whether they pass and what the headers say.
 */
export class Verdict {
  /** Empty where the store failed and nobody counted. */
  readonly checks: readonly Check[];
  /** The store's time, Unix ms; where the store failed, the process's. */
  readonly at: number;
  /** The store failed; which fail mode answered in its place. */
  readonly degraded: FailMode | undefined;
  readonly allowed: boolean;
  #decision: Decision | undefined = undefined;

  constructor(checks: readonly Check[], at: number, degraded: FailMode | undefined) {
    this.checks = checks;
    this.at = at;
    this.degraded = degraded;
    this.allowed = degraded === 'closed' ? false : allPass(checks);
  }

  /** The check that says most: see {@link bindingOf}. */
  get binding(): Check | undefined {
    return bindingOf(this.checks);
  }

  get decision(): Decision {
    return (this.#decision ??= this.#made());
  }

  #made(): Decision {
    const { checks, at, degraded } = this;
    if (degraded === 'open' || degraded === 'closed') return uncounted(degraded, at);
    // At its length: a list that grows from nothing takes 17 places at once.
    const readings = checks.map(({ described }) => described);
    const decision: Mutable<Decision> = fold(readings, at);
    if (degraded !== undefined) decision.degraded = degraded;
    const receipt = this.allowed ? receiptFor(this) : undefined;
    if (receipt !== undefined) decision.receipt = receipt;
    return decision;
  }
}

function allPass(checks: readonly Check[]): boolean {
  for (const { reason, rule } of checks) if (reason !== 'ok' && !rule.shadow) return false;
  return true;
}

/** It names what one kind of operation took: what was consumed, or else the reservations. */
function receiptFor({ checks, at, degraded }: Verdict): Receipt | undefined {
  const kind = checks.some(({ operation }) => operation.type === 'consume') ? 'consume' : 'reserve';
  let rules: ReceiptEntry[] | undefined;
  for (const { rule, operation, reason } of checks) {
    if (operation.type !== kind || reason !== 'ok') continue;
    const entry = { scope: rule.scope, cost: operation.cost, plan: rule.plan };
    if (rules === undefined) rules = [entry];
    else rules.push(entry);
  }
  if (rules === undefined) return undefined;
  receiptPrefix ??= nodeCrypto().randomUUID();
  receipts += 1;
  const receipt: Mutable<Receipt> = { id: `${receiptPrefix}-${String(receipts)}`, kind, at, rules };
  if (degraded === 'local') receipt.local = true;
  return receipt;
}
