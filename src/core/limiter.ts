import { costFor, isSubjectMap, planFor } from './call.js';
import type { CallOptions, Costs, Reservation, Subjects } from './call.js';
import { milliseconds } from './check.js';
import type { Decision, Receipt, ReceiptEntry } from './decision.js';
import type { Engine } from './engine.js';
import { rangeError, received, typeError } from './errors.js';
import type { EventName, Listener } from './events.js';
import { checkCost, hashingOf, limiterEntries, makeEngine } from './limiter-options.js';
import type { LimiterEntry, LimiterOptions, StoreFactories } from './limiter-options.js';
import type { MaybePromise } from './maybe-promise.js';
import { LOOK } from './operation.js';
import type { BatchItem, HashedSubject, Operation } from './operation.js';
import { checkPlan } from './rule.js';
import type { Rule } from './rule.js';
import { SpentReceipts } from './spent.js';
import type { StoredCell } from './store.js';
import { hashSubject, isHashedSubject } from './subject.js';
import type { Hashing, SubjectKey } from './subject.js';

/**
 * Rules decided together, without Express. Refusing is a value: only misuse throws, as a TypeError or RangeError with a
 * `code`; a store that fails is answered by the fail mode.
 */
export class Limiter {
  /** For the Express layer and the routers of this package. */
  readonly engine: Engine;
  readonly hashing: Hashing;
  /** The rules, in order, also those that live by plans or are off. */
  readonly entries: readonly LimiterEntry[];
  readonly #spent = new SpentReceipts();

  constructor(options: LimiterOptions, factories: StoreFactories) {
    this.entries = limiterEntries(options);
    this.engine = makeEngine(options, factories);
    this.hashing = hashingOf(options);
  }

  /** The scopes of the rules, in order. */
  get scopes(): readonly string[] {
    return this.entries.map(({ template }) => template.scope);
  }

  /** The rules that have numbers of their own, in order; those that live by plans are not among them. */
  get rules(): readonly Rule[] {
    return this.entries.flatMap(({ own }) => own ?? []);
  }

  /** Decides, and takes the cost of every rule when all pass. */
  async consume(subject: Subjects, options: CallOptions = {}): Promise<Decision> {
    return this.engine.decide(this.#deciding('consume', subject, options));
  }

  /** The verdict as things stand, e.g. to show what is left. Takes nothing, starts nothing. Cost 1 unless named. */
  async peek(subject: Subjects, options: CallOptions = {}): Promise<Decision> {
    return this.engine.decide(this.#deciding('peek', subject, options), true);
  }

  /** Decides like consume, but holds the units until they are settled, released, or lapse (`holdSec`). */
  async reserve(subject: Subjects, options: CallOptions = {}): Promise<Reservation> {
    const decision = await this.engine.decide(this.#deciding('reserve', subject, options));
    return {
      decision,
      settle: actual => this.settle(subject, decision, actual),
      release: () => this.settle(subject, decision, 0),
    };
  }

  /**
   * Ends a reservation of which the receipt is at hand, e.g. in another process. A spent receipt, or one of a consume,
   * does nothing.
   */
  async settle(subject: Subjects, receipt: Decision | Receipt, actual: Costs): Promise<Decision> {
    return this.#spend('reserve', subject, receipt, actual, (entry, units, at) => ({
      type: 'settle',
      at,
      held: entry.cost,
      actual: units,
    }));
  }

  /** Gives back what a consume took, or `n` of it. A spent receipt, or one of a reserve, does nothing. */
  async refund(subject: Subjects, receipt: Decision | Receipt, n?: Costs): Promise<Decision> {
    return this.#spend('consume', subject, receipt, n, (entry, units, at) => ({
      type: 'refund',
      at,
      units: Math.min(units, entry.cost),
    }));
  }

  /** Adds units, past the limit if need be (up to twice the capacity); starts the block when the limit is reached. */
  async charge(subject: Subjects, n: Costs = 1, options: Pick<CallOptions, 'plan'> = {}): Promise<Decision> {
    this.#checkCosts(n);
    return this.#each(subject, options, scope => ({ type: 'charge', units: costFor(n, scope, 1) }));
  }

  /** Blocks by hand, replacing any block that stands: for seconds, or `'forever'`. */
  async block(subject: Subjects, sec: number | 'forever'): Promise<Decision> {
    const ms = sec === 'forever' ? null : milliseconds(sec, 'block(subject, sec): sec', { zero: false });
    return this.#each(subject, {}, () => ({ type: 'block', ms }));
  }

  /** Ends the block and forgets the strikes. */
  async unblock(subject: Subjects): Promise<Decision> {
    return this.#each(subject, {}, () => ({ type: 'unblock' }));
  }

  /** Forgets counter, holds, block and strikes. */
  async reset(subject: Subjects): Promise<Decision> {
    return this.#each(subject, {}, () => ({ type: 'reset' }));
  }

  /** What a success does: as reset, but a standing manual block stays. */
  async forgive(subject: Subjects): Promise<Decision> {
    return this.#each(subject, {}, () => ({ type: 'forgive' }));
  }

  /** All that the store keeps of a subject, in every scope. Rejects when the store fails. */
  async inspect(subject: SubjectKey | HashedSubject): Promise<readonly StoredCell[]> {
    return this.engine.store.inspect(this.#hash(subject).hash);
  }

  /** Listens; the function that comes back ends it. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    return this.engine.events.on(name, listener);
  }

  /** Forgets every subject in the scopes of this limiter. Rejects when the store fails. */
  async resetAll(): Promise<void> {
    await this.engine.store.clear(this.scopes);
  }

  /** Waits for everything that is still being settled. The store stays open: it may serve others. */
  async close(): Promise<void> {
    await this.engine.settled();
  }

  #deciding(type: 'consume' | 'peek' | 'reserve', subject: Subjects, options: CallOptions): BatchItem[] {
    if (options.cost !== undefined) this.#checkCosts(options.cost);
    const subjects = this.#subjects(subject);
    return this.entries.flatMap(entry => {
      const { scope } = entry.template;
      const rule = this.#ruleFor(entry, options.plan);
      if (rule === undefined) return [];
      const item = subjects(scope);
      if (item === undefined) {
        throw typeError(
          'ERR_LIMITKEEPER_SUBJECT',
          `no subject for scope ${JSON.stringify(scope)}: name one for every scope.`,
        );
      }
      return [{ rule, subject: item, operation: { type, cost: costFor(options.cost, scope, entry.cost) } }];
    });
  }

  /** An operation on every rule, or on those for which the subjects name one. */
  #each(
    subject: Subjects,
    { plan }: Pick<CallOptions, 'plan'>,
    operation: (scope: string) => Operation,
  ): MaybePromise<Decision> {
    const subjects = this.#subjects(subject);
    return this.engine.effect(
      this.entries.flatMap(entry => {
        const item = subjects(entry.template.scope);
        const op = operation(entry.template.scope);
        // Blocks and resets belong to scope and subject: a rule that lives by plans needs no numbers for them.
        const rule = this.#ruleFor(entry, plan, op.type !== 'charge');
        return item === undefined || rule === undefined ? [] : [{ rule, subject: item, operation: op }];
      }),
    );
  }

  #spend(
    kind: Receipt['kind'],
    subject: Subjects,
    of: Decision | Receipt,
    costs: Costs | undefined,
    operation: (entry: ReceiptEntry, units: number, at: number) => Operation,
  ): MaybePromise<Decision> {
    if (costs !== undefined) this.#checkCosts(costs);
    const receipt = 'kind' in of ? of : of.receipt;
    const spends = receipt?.kind === kind && this.#spent.spend(receipt.id);
    const subjects = this.#subjects(subject);
    const batch = this.entries.flatMap((entry): BatchItem[] => {
      const { scope } = entry.template;
      const taken = receipt?.rules.find(rule => rule.scope === scope);
      const item = subjects(scope);
      // The numbers that it was taken with: a plan that changed since has a counter of its own.
      const rule = this.#ruleFor(entry, taken?.plan, true);
      if (item === undefined || rule === undefined) return [];
      if (!spends || taken === undefined) return [{ rule, subject: item, operation: LOOK }];
      const units = costs === undefined ? taken.cost : costFor(costs, scope, 1);
      return [{ rule, subject: item, operation: operation(taken, units, receipt.at) }];
    });
    return this.engine.effect(batch, receipt?.local === true);
  }

  #ruleFor(entry: LimiterEntry, plan: CallOptions['plan'], anyNumbers = false): Rule | undefined {
    const { template, own } = entry;
    if (template.mode === 'off') return undefined;
    const chosen = planFor(plan, template.scope);
    if (chosen === 'unlimited') return undefined;
    if (chosen !== undefined) {
      return template.at(
        checkPlan(chosen, template.scope),
        `plan of scope ${JSON.stringify(template.scope)}: `,
      );
    }
    if (own !== undefined) return own;
    if (anyNumbers) return template.at({ limit: 1, windowSec: 1 });
    throw typeError(
      'ERR_LIMITKEEPER_PLAN',
      `scope ${JSON.stringify(template.scope)} has no limit and windowSec of its own: pass { plan: { limit, windowSec } } with the call.`,
      { option: 'plan' },
    );
  }

  #hash(subject: SubjectKey | HashedSubject): HashedSubject {
    return isHashedSubject(subject) ? subject : hashSubject(subject, this.hashing);
  }

  #subjects(subject: Subjects): (scope: string) => HashedSubject | undefined {
    if (!isSubjectMap(subject)) {
      const one = this.#hash(subject);
      return () => one;
    }
    this.#checkScopes(Object.keys(subject));
    return scope => {
      const one = Object.hasOwn(subject, scope) ? subject[scope] : undefined;
      return one === undefined ? undefined : this.#hash(one);
    };
  }

  #checkCosts(costs: Costs): void {
    if (typeof costs === 'number') {
      checkCost(costs, 'cost');
      return;
    }
    if (typeof costs !== 'object' || (costs as unknown) === null) {
      throw typeError(
        'ERR_LIMITKEEPER_COST',
        `cost must be a whole number ≥ 0, or { [scope]: number }, got ${received(costs)}.`,
      );
    }
    this.#checkScopes(Object.keys(costs));
    for (const [scope, cost] of Object.entries(costs))
      checkCost(cost, `the cost of scope ${JSON.stringify(scope)}`);
  }

  #checkScopes(scopes: readonly string[]): void {
    const unknown = scopes.find(scope => !this.scopes.includes(scope));
    if (unknown === undefined) return;
    throw rangeError(
      'ERR_LIMITKEEPER_UNKNOWN_SCOPE',
      `there is no rule of scope ${JSON.stringify(unknown)} here; there are ${this.scopes.join(', ')}.`,
    );
  }
}
