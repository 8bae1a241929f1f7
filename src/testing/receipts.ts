import type { Operation } from '../core/operation.js';
import { LOOK } from '../core/operation.js';
import type { VectorCost, VectorStep } from './vectors.js';

/** What an allowed consume or reserve took: by scope, in the rules that it charged. */
interface Taken {
  readonly kind: 'consume' | 'reserve';
  readonly at: number;
  readonly costs: ReadonlyMap<string, number>;
}

/** The receipts of one case, by the step that handed them out. Each is good once. */
export class Receipts {
  readonly #taken = new Map<number, Taken>();

  keep(step: number, receipt: Taken): void {
    this.#taken.set(step, receipt);
  }

  /**
   * The operation of a settle or refund step in one scope. Of the wrong kind, spent, or in a rule that it did not charge
   * (a shadow rule that refused) a receipt does nothing: then it is a look.
   */
  operation({ op, of = -1, cost }: VectorStep, scope: string): Operation {
    const receipt = this.#taken.get(of);
    const taken = receipt?.costs.get(scope);
    if (receipt === undefined || taken === undefined) return LOOK;
    const amount = costIn(cost, scope);
    if (op === 'settle' && receipt.kind === 'reserve') {
      return { type: 'settle', at: receipt.at, held: taken, actual: amount };
    }
    if (op === 'refund' && receipt.kind === 'consume') {
      return { type: 'refund', at: receipt.at, units: Math.min(taken, amount) };
    }
    return LOOK;
  }

  /** A receipt is spent by its first settle or refund, a partial one too; one of the wrong kind leaves it good. */
  spend({ op, of = -1 }: VectorStep): void {
    const fits = { settle: 'reserve', refund: 'consume' } as const;
    if (op !== 'settle' && op !== 'refund') return;
    if (this.#taken.get(of)?.kind === fits[op]) this.#taken.delete(of);
  }
}

/** The cost of a rule: a scope missing in a map of costs costs 1. */
export function costIn(cost: VectorCost | undefined, scope: string): number {
  return typeof cost === 'object' ? (cost[scope] ?? 1) : (cost ?? 1);
}
