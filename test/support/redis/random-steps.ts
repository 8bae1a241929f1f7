import type { Operation } from '../../../src/core/operation.js';
import { RuleTemplate } from '../../../src/core/rule.js';
import type { Plan, RuleSettings } from '../../../src/core/rule.js';
import { hashSubject } from '../../../src/core/subject.js';
import type { Batch, BatchItem } from '../../../src/testing/batch.js';

/** A repeatable sequence of whole numbers (mulberry32). */
export function randomly(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return below => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

export type Random = ReturnType<typeof randomly>;

const ALGORITHMS = ['sliding-window', 'fixed-window', 'sliding-log', 'token-bucket', 'leaky-bucket'] as const;

/** One subject (or two) with its rules and what was taken so far. */
export class World {
  readonly #random: Random;
  readonly #templates: readonly { template: RuleTemplate; plans: readonly Plan[] }[];
  readonly #subjects: readonly ReturnType<typeof hashSubject>[];
  readonly #taken: { at: number; units: number; hold: boolean }[][] = [];

  /** @param subjects how many subjects its rules are spread over. */
  constructor(name: string, random: Random, subjects = 1) {
    this.#random = random;
    this.#subjects = Array.from({ length: subjects }, (_, i) => hashSubject([name, i], {}));
    this.#templates = Array.from({ length: 1 + random(3) }, (_, i) =>
      randomRule(random, `rule.${String(i)}`),
    );
  }

  /** The next call. Mostly one that decides; sometimes a plan differs, so that counters of several windows meet. */
  step(): Batch {
    const random = this.#random;
    const effect = random(10) < 4;
    return this.#templates.map(({ template, plans }, i): BatchItem => {
      const rule = template.at(plans[random(12) === 0 ? 1 : 0]!);
      const subject = this.#subjects[i % this.#subjects.length]!;
      return { rule, subject, operation: effect ? this.#effect(i) : this.#decision(rule.capacity) };
    });
  }

  #decision(capacity: number): Operation {
    const type = (['consume', 'consume', 'consume', 'reserve', 'peek'] as const)[this.#random(5)]!;
    return { type, cost: this.#units(capacity) };
  }

  #units(capacity: number): number {
    const random = this.#random;
    const kind = random(8);
    if (kind < 4) return 1;
    if (kind === 4) return 0;
    if (kind === 5) return capacity + random(2);
    return random(Math.max(1, Math.min(capacity, 1e6)));
  }

  #effect(i: number): Operation {
    const random = this.#random;
    const taken = (this.#taken[i] ??= []);
    const receipt = taken[random(Math.max(1, taken.length))];
    switch (random(14)) {
      case 0:
        return { type: 'block', ms: random(4) === 0 ? null : 1 + random(100_000) };
      case 1:
        return { type: 'unblock' };
      case 2:
        return random(3) === 0 ? { type: 'reset' } : { type: 'forgive' };
      case 3:
      case 4:
      case 5:
      case 6:
        return { type: 'charge', units: this.#units(20) };
      case 7:
      case 8:
      case 9:
        return receipt === undefined
          ? { type: 'charge', units: 1 }
          : { type: 'refund', at: receipt.at, units: Math.max(0, receipt.units - random(2)) };
      default:
        return receipt === undefined
          ? { type: 'charge', units: 0 }
          : { type: 'settle', at: receipt.at, held: receipt.units, actual: random(2 * receipt.units + 2) };
    }
  }

  /** Remembers what a call took, for refunds and settles to come. */
  took(batch: Batch, at: number, allowed: readonly boolean[]): void {
    batch.forEach(({ operation }, i) => {
      if (operation.type !== 'consume' && operation.type !== 'reserve') return;
      if (!allowed[i]) return;
      const taken = (this.#taken[i] ??= []);
      taken.push({ at, units: operation.cost, hold: operation.type === 'reserve' });
      if (taken.length > 5) taken.shift();
    });
  }
}

function randomRule(random: Random, scope: string): { template: RuleTemplate; plans: readonly Plan[] } {
  const algorithm = ALGORITHMS[random(ALGORITHMS.length)]!;
  const isBucket = algorithm === 'token-bucket' || algorithm === 'leaky-bucket';
  const blocks = random(3);
  const settings: RuleSettings = {
    scope,
    algorithm,
    mode: random(5) === 0 ? 'shadow' : 'enforce',
    holdSec: [0.007, 1, 60][random(3)]!,
    blockSec: blocks === 0 ? 0 : blocks === 1 ? [0.05, 2, 900][random(3)]! : [0.5, 3, 60],
    ...(algorithm === 'fixed-window' && random(2) === 0 ? { align: 'epoch' as const } : {}),
  };
  const template = new RuleTemplate(settings);
  const plans = [0, 1].map((): Plan => {
    // Small numbers meet every edge; the large ones come close to 2^52 scaled units, where doubles would round.
    const [limit, windowSec] = (
      [
        [1 + random(5), [0.01, 1, 60][random(3)]!],
        [1 + random(100), 3.337],
        [algorithm === 'sliding-log' ? 7 : 142_000, 365 * 86_400],
        [algorithm === 'sliding-log' ? 1000 : 50_000_000, 86_399.999],
      ] as const
    )[random(6) < 4 ? random(2) : 2 + random(2)]!;
    if (!isBucket || limit > windowSec * 1000)
      return isBucket ? { limit: 50, windowSec } : { limit, windowSec };
    return { limit, windowSec, burst: 1 + random(limit) };
  });
  return {
    template,
    plans: plans.map(plan => (isBucket && plan.burst === undefined ? { ...plan, burst: 10_000 } : plan)),
  };
}
