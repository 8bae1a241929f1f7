import { processWide } from './process-wide.js';

/** Enough for the receipts of many seconds under load; an older one is spent once more at worst. */
const REMEMBERED = 10_000;

/** Those of this process: two limiters may share a store, and a receipt is spent for both. */
export function spentReceipts(): SpentReceipts {
  return processWide('spent-receipts.v1', () => new SpentReceipts());
}

/**
 * The receipts that were spent, by id: a copy that went through JSON is the same receipt. Bounded; the oldest are
 * forgotten first.
 */
class SpentReceipts {
  readonly #ids = new Set<string>();

  /** Marks the receipt as spent. @returns false when it was already. */
  spend(id: string): boolean {
    if (this.#ids.has(id)) return false;
    if (this.#ids.size >= REMEMBERED) {
      const [oldest] = this.#ids;
      if (oldest !== undefined) this.#ids.delete(oldest);
    }
    this.#ids.add(id);
    return true;
  }
}
