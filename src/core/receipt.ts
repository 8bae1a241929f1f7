import type { Decision, Receipt } from './decision.js';
import { received, typeError } from './errors.js';

/**
 * The receipt in what a caller kept: a decision or the receipt itself, perhaps read back from JSON. `undefined` where the
 * decision has none, because nothing was taken.
 *
 * @throws TypeError `ERR_LIMITKEEPER_RECEIPT`: it comes from outside the process, and a store must not count with what
 * somebody's database made of it.
 */
export function receiptOf(kept: Decision | Receipt): Receipt | undefined {
  const found = partsOf(kept);
  if ('kind' in found) return checked(found);
  if (!('allowed' in found)) throw badReceipt(kept);
  const { receipt } = found;
  return receipt === undefined ? undefined : checked(partsOf(receipt));
}

function checked(receipt: Fields): Receipt {
  const { id, kind, at, rules } = receipt;
  const isSound =
    typeof id === 'string' &&
    (kind === 'consume' || kind === 'reserve') &&
    isWhole(at) &&
    Array.isArray(rules) &&
    rules.every((entry: unknown) => {
      const { scope, cost, plan } = partsOf(entry);
      return typeof scope === 'string' && isWhole(cost) && typeof plan === 'object';
    });
  if (!isSound) throw badReceipt(receipt);
  return receipt as unknown as Receipt;
}

type Fields = Readonly<Record<string, unknown>>;

function partsOf(value: unknown): Fields {
  if (typeof value === 'object' && value !== null) return value as Fields;
  throw badReceipt(value);
}

const isWhole = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

function badReceipt(came: unknown): TypeError {
  return typeError(
    'ERR_LIMITKEEPER_RECEIPT',
    `a receipt must be the decision that consume or reserve answered, or its receipt, or a copy of one through JSON, got ${received(came)}.`,
  );
}
