import { nodeCrypto } from './builtin.js';
import type { Check } from './check.js';
import { COOL_DOWN_MS } from './breaker.js';
import { bindingOf } from './decision.js';
import type { Decision, Receipt, ReceiptEntry, RuleReading } from './decision.js';
import type { FailMode } from './events.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Receipts are told apart across processes; the counter makes them cheap. */
let receiptPrefix: string | undefined;
let receipts = 0;

/**
 * The checks of one call, decided. It says what a {@link Decision} says; the decision itself, plain data with a receipt, is
 * made when somebody asks: most requests need no more than whether they pass and what the headers say.
 */
export class Verdict implements Omit<Decision, 'receipt' | 'degraded'> {
  /** Empty where the store failed and nobody counted. */
  readonly checks: readonly Check[];
  /** The store's time, Unix ms; where the store failed, the process's. */
  readonly at: number;
  /** The store failed; which fail mode answered in its place. */
  readonly degraded: FailMode | undefined;
  /** The check that says most: see {@link bindingOf}. */
  readonly binding: Check | undefined;
  readonly allowed: boolean;
  #decision: Decision | undefined = undefined;

  constructor(checks: readonly Check[], at: number, degraded: FailMode | undefined) {
    this.checks = checks;
    this.at = at;
    this.degraded = degraded;
    this.binding = bindingOf(checks);
    this.allowed = degraded !== 'closed' && (this.binding === undefined || this.binding.allowed);
  }

  get reason(): Decision['reason'] {
    return this.degraded === 'closed' ? 'unavailable' : (this.binding?.reason ?? 'ok');
  }

  get scope(): string | null {
    return this.binding?.scope ?? null;
  }

  get limit(): number | null {
    return this.binding?.limit ?? null;
  }

  get remaining(): number | null {
    return this.binding?.remaining ?? null;
  }

  get retryAfterMs(): number | null {
    if (this.degraded === 'closed') return COOL_DOWN_MS;
    return this.binding === undefined ? 0 : this.binding.retryAfterMs;
  }

  get moreAfterMs(): number | null {
    return this.binding?.moreAfterMs ?? null;
  }

  get resetAfterMs(): number | null {
    return this.binding?.resetAfterMs ?? null;
  }

  get readings(): readonly RuleReading[] {
    return this.checks;
  }

  get decision(): Decision {
    return (this.#decision ??= this.#made());
  }

  #made(): Decision {
    const { allowed, reason, scope, limit, remaining, retryAfterMs, moreAfterMs, resetAfterMs, at } = this;
    const { degraded, checks } = this;
    const readings = checks.map(({ described }) => described);
    const decision: Mutable<Decision> = {
      allowed,
      reason,
      scope,
      limit,
      remaining,
      retryAfterMs,
      moreAfterMs,
      resetAfterMs,
      at,
      readings,
    };
    if (degraded !== undefined) decision.degraded = degraded;
    const receipt = allowed ? receiptFor(this) : undefined;
    if (receipt !== undefined) decision.receipt = receipt;
    return decision;
  }
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
