/** Seconds that one number of the recent past stands for, and how many are kept: five minutes. */
export const STEP_SEC = 2;
export const STEPS = 150;

/** How often something happened in the last five minutes, in a ring of fixed size. Times are of a monotonic clock. */
class Ring {
  readonly #steps = new Float64Array(STEPS);
  /** The step that was counted in last. */
  #last = 0;

  add(nowMs: number): void {
    const i = this.#advance(nowMs) % STEPS;
    this.#steps[i] = (this.#steps[i] ?? 0) + 1;
  }

  /** Oldest first; the last number is of the step under way. */
  list(nowMs: number): readonly number[] {
    const step = this.#advance(nowMs);
    return Array.from({ length: STEPS }, (_, i) => this.#steps[(step + 1 + i) % STEPS] ?? 0);
  }

  /** Empties the steps that nobody counted in. */
  #advance(nowMs: number): number {
    const step = Math.floor(nowMs / (STEP_SEC * 1000));
    const from = Math.max(this.#last + 1, step - STEPS + 1);
    for (let i = from; i <= step; i += 1) this.#steps[i % STEPS] = 0;
    this.#last = step;
    return step;
  }
}

/** How often things of one kind happened: since the start, and in each step of the last five minutes. */
class Tally extends Ring {
  total = 0;

  override add(nowMs: number): void {
    this.total += 1;
    super.add(nowMs);
  }
}

/** Counts of some kinds. Times are those of `performance.now()`. */
export class Counts<K extends string> {
  readonly #kinds: readonly K[];
  readonly #tallies: Readonly<Record<K, Tally>>;

  constructor(kinds: readonly K[]) {
    this.#kinds = kinds;
    this.#tallies = this.#each(() => new Tally());
  }

  get totals(): Readonly<Record<K, number>> {
    return this.#each(kind => this.#tallies[kind].total);
  }

  add(kind: K, nowMs: number): void {
    this.#tallies[kind].add(nowMs);
  }

  recent(nowMs: number): Readonly<Record<K, readonly number[]>> {
    return this.#each(kind => this.#tallies[kind].list(nowMs));
  }

  #each<T>(make: (kind: K) => T): Record<K, T> {
    return Object.fromEntries(this.#kinds.map(kind => [kind, make(kind)])) as Record<K, T>;
  }
}

/**
 * What became of requests, each counted once however many rules it met. One that two limiters decide is two decisions, and
 * counted by both. Rules in shadow mode decide nothing, and are no part of it.
 */
export type RequestCounts = Counts<'allowed' | 'refused'>;

export const requestCounts = (): RequestCounts => new Counts(['allowed', 'refused']);

/** What one scope did in this process, since the router was made. */
export class ScopeCounts {
  /**
   * `allowed`: passed this rule in a request that went on. `refused`: refused by this rule. `shadowRefused`: would have
   * been, were the rule not in shadow mode; nobody was refused.
   */
  readonly verdicts = new Counts(['allowed', 'refused', 'shadowRefused']);
  /** Automatic blocks that started. */
  blocked = 0;
  /** Calls of this rule's limiter that the store did not answer; its fail mode did. */
  storeErrors = 0;

  get totals(): Readonly<Record<string, number>> {
    return { ...this.verdicts.totals, blocked: this.blocked, storeErrors: this.storeErrors };
  }
}
