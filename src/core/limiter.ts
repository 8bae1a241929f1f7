import { costFor } from './call.js';
import { Check } from './check.js';
import type { CallOptions, Costs, Reservation, Subjects } from './call.js';
import { milliseconds } from './validate.js';
import type { Decision, Receipt, ReceiptEntry } from './decision.js';
import type { Engine } from './engine.js';
import { typeError } from './errors.js';
import type { EventName, Listener } from './events.js';
import { hashingOf, limiterEntries, makeEngine } from './limiter-options.js';
import type { LimiterEntry, LimiterOptions, StoreFactories } from './limiter-options.js';
import { chain, promised } from './maybe-promise.js';
import type { MaybePromise } from './maybe-promise.js';
import { LOOK } from './operation.js';
import type { HashedSubject, Operation } from './operation.js';
import { operatorCall, WHOLE_STORE_DEADLINE_MS } from './operator-call.js';
import { receiptOf } from './receipt.js';
import type { Rule } from './rule.js';
import { RuleSet, subjectFor } from './rule-set.js';
import type { HashedSubjects } from './rule-set.js';
import { spentReceipts } from './spent.js';
import type { StoredCell } from './store.js';
import type { Hashing, SubjectKey } from './subject.js';
import type { Verdict } from './verdict.js';

/** What most calls pass; known to be sound. */
const NO_OPTIONS: CallOptions = Object.freeze({});

/**
 * Rules decided together, without Express. Refusing is a value: only misuse throws, as a TypeError or RangeError with a
 * `code`; a store that fails is answered by the fail mode.
 */
export class Limiter {
  /** For the Express layer and the routers of this package. */
  readonly engine: Engine;
  readonly hashing: Hashing;
  readonly #rules: RuleSet;

  constructor(options: LimiterOptions, factories: StoreFactories) {
    const entries = limiterEntries(options);
    this.hashing = hashingOf(options);
    this.#rules = new RuleSet(entries, this.hashing);
    this.engine = makeEngine(options, factories, this.#rules.scopes);
  }

  /** The rules, in order, also those that live by plans or are off. */
  get entries(): readonly LimiterEntry[] {
    return this.#rules.entries;
  }

  /** The scopes of the rules, in order. */
  get scopes(): readonly string[] {
    return this.#rules.scopes;
  }

  /** The rules that have numbers of their own, in order; those that live by plans are not among them. */
  get rules(): readonly Rule[] {
    return this.entries.flatMap(({ own }) => own ?? []);
  }

  /** Decides, and takes the cost of every rule when all pass. */
  consume(subject: Subjects, options: CallOptions = NO_OPTIONS): Promise<Decision> {
    return decisionOf(() =>
      this.engine.decide(this.#deciding('consume', this.#rules.hashAll(subject), options)),
    );
  }

  /** The verdict as things stand, e.g. to show what is left. Takes nothing, starts nothing. */
  peek(subject: Subjects, options: CallOptions = NO_OPTIONS): Promise<Decision> {
    return decisionOf(() =>
      this.engine.decide(this.#deciding('peek', this.#rules.hashAll(subject), options), true),
    );
  }

  /** Decides like consume, but holds the units until they are settled, released, or lapse (`holdSec`). */
  async reserve(subject: Subjects, options: CallOptions = NO_OPTIONS): Promise<Reservation> {
    const subjects = this.#rules.hashAll(subject);
    const { decision } = await this.engine.decide(this.#deciding('reserve', subjects, options));
    return {
      decision,
      settle: async actual => this.#settle(subjects, decision, actual),
      release: async () => this.#settle(subjects, decision, 0),
    };
  }

  /**
   * Ends a reservation of which the receipt is at hand, e.g. in another process. A spent receipt, or one of a consume,
   * does nothing.
   */
  async settle(subject: Subjects, receipt: Decision | Receipt, actual: Costs): Promise<Decision> {
    return this.#settle(this.#rules.hashAll(subject), receipt, actual);
  }

  /** Gives back what a consume took, or `n` of it. A spent receipt, or one of a reserve, does nothing. */
  async refund(subject: Subjects, receipt: Decision | Receipt, n?: Costs): Promise<Decision> {
    return this.#spend('consume', this.#rules.hashAll(subject), receipt, n, (entry, units, at) => ({
      type: 'refund',
      at,
      units: Math.min(units, entry.cost),
    }));
  }

  /** Adds units, past the limit if need be (up to twice the capacity); starts the block when the limit is reached. */
  async charge(subject: Subjects, n: Costs = 1, options: Pick<CallOptions, 'plan'> = {}): Promise<Decision> {
    this.#rules.checkCosts(n);
    this.#rules.check(options, ['plan']);
    return this.#each(
      subject,
      scope => ({ type: 'charge', units: costFor(n, scope, 1) }),
      entry => this.#rules.ruleOf(entry, options.plan),
    );
  }

  /** Blocks by hand, replacing any block that stands: for seconds, or `'forever'`. */
  async block(subject: Subjects, sec: number | 'forever'): Promise<Decision> {
    const ms = sec === 'forever' ? null : milliseconds(sec, 'block(subject, sec): sec', { zero: false });
    return this.#each(subject, () => ({ type: 'block', ms }));
  }

  /** Ends the block and forgets the strikes. */
  async unblock(subject: Subjects): Promise<Decision> {
    return this.#each(subject, () => ({ type: 'unblock' }));
  }

  /** Forgets counter, holds, block and strikes. */
  async reset(subject: Subjects): Promise<Decision> {
    return this.#each(subject, () => ({ type: 'reset' }));
  }

  /** What a success does: as reset, but a standing manual block stays. */
  async forgive(subject: Subjects): Promise<Decision> {
    return this.#each(subject, () => ({ type: 'forgive' }));
  }

  /** All that the store keeps of a subject, in every scope. Rejects when the store fails, or has not answered in 5 s. */
  async inspect(subject: SubjectKey | HashedSubject): Promise<readonly StoredCell[]> {
    const { hash } = this.#rules.hash(subject);
    const { store } = this.engine;
    return operatorCall(store, 'inspect', () => store.inspect(hash));
  }

  /** Listens; the function that comes back ends it. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    return this.engine.events.on(name, listener);
  }

  /** Forgets every subject in the scopes of this limiter. Rejects when the store fails, or has not ended within a minute. */
  async resetAll(): Promise<void> {
    const { store } = this.engine;
    await operatorCall(store, 'clear', () => store.clear(this.scopes), WHOLE_STORE_DEADLINE_MS);
  }

  /**
   * Waits for everything that is still being settled: for 5 s at most, or twice `storeTimeoutMs` where that is more. The store
   * stays open: it may serve others.
   */
  async close(): Promise<void> {
    await this.engine.settled();
  }

  #deciding(type: 'consume' | 'peek' | 'reserve', subjects: HashedSubjects, options: CallOptions): Check[] {
    if (options !== NO_OPTIONS) this.#rules.check(options, ['cost', 'plan']);
    const checks: Check[] = [];
    for (const entry of this.entries) {
      const { scope } = entry.template;
      const rule = this.#rules.ruleOf(entry, options.plan);
      if (rule === undefined) continue;
      const subject = subjectFor(subjects, scope);
      if (subject === undefined) {
        throw typeError(
          'ERR_LIMITKEEPER_SUBJECT',
          `no subject for scope ${JSON.stringify(scope)}: name one for every scope.`,
        );
      }
      checks.push(new Check(rule, subject, { type, cost: costFor(options.cost, scope, entry.cost) }));
    }
    return checks;
  }

  /** An operation on every rule, or on those for which the subjects name one. */
  async #each(
    subject: Subjects,
    operation: (scope: string) => Operation,
    ruleOf = (entry: LimiterEntry): Rule | undefined => this.#rules.anyRuleOf(entry),
  ): Promise<Decision> {
    const parts = this.#parts(this.#rules.hashAll(subject), ruleOf);
    const checks = parts.map(part => new Check(part.rule, part.subject, operation(part.rule.scope)));
    return (await this.engine.effect(checks)).decision;
  }

  #settle(subjects: HashedSubjects, receipt: Decision | Receipt, actual: Costs): Promise<Decision> {
    return this.#spend('reserve', subjects, receipt, actual, (entry, units, at) => ({
      type: 'settle',
      at,
      held: entry.cost,
      actual: units,
    }));
  }

  async #spend(
    kind: Receipt['kind'],
    subjects: HashedSubjects,
    kept: Decision | Receipt,
    costs: Costs | undefined,
    operation: (entry: ReceiptEntry, units: number, at: number) => Operation,
  ): Promise<Decision> {
    if (costs !== undefined) this.#rules.checkCosts(costs);
    const receipt = receiptOf(kept);
    const taken = new Map(receipt?.rules.map(entry => [entry.scope, entry]));
    // With the numbers that it was taken with: a plan that changed since has a counter of its own.
    const parts = this.#parts(subjects, entry => {
      const plan = taken.get(entry.template.scope)?.plan;
      return plan === undefined && entry.own === undefined ? undefined : this.#rules.ruleOf(entry, plan);
    });
    const isMeant = receipt?.kind === kind && parts.some(({ rule }) => taken.has(rule.scope));
    // Last of all: a call that throws has not spent it.
    const spends = isMeant && spentReceipts().spend(receipt.id);
    const checks = parts.map(({ rule, subject }) => {
      const entry = taken.get(rule.scope);
      if (!spends || entry === undefined) return new Check(rule, subject, LOOK);
      const units = costs === undefined ? entry.cost : costFor(costs, rule.scope, 1);
      return new Check(rule, subject, operation(entry, units, receipt.at));
    });
    return (await this.engine.effect(checks, receipt?.local === true)).decision;
  }

  #parts(
    subjects: HashedSubjects,
    ruleOf: (entry: LimiterEntry) => Rule | undefined,
  ): { readonly rule: Rule; readonly subject: HashedSubject }[] {
    return this.entries.flatMap(entry => {
      const subject = subjectFor(subjects, entry.template.scope);
      const rule = subject === undefined ? undefined : ruleOf(entry);
      return subject === undefined || rule === undefined ? [] : [{ rule, subject }];
    });
  }
}

/** Without a turn of the microtask queue where the store answers at once. */
const decisionOf = (make: () => MaybePromise<Verdict>): Promise<Decision> =>
  promised(() => chain(make(), plain));

const plain = ({ decision }: Verdict): Decision => decision;
