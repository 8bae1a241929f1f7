import { isPlanMap, isSubjectMap, planFor } from './call.js';
import type { CallOptions, Costs, Subjects } from './call.js';
import { knownOptions, plainObject } from './validate.js';
import { rangeError, received, typeError } from './errors.js';
import { checkCost } from './limiter-options.js';
import type { LimiterEntry } from './limiter-options.js';
import type { HashedSubject } from './operation.js';
import type { Plan, Rule } from './rule.js';
import { hashSubject, isHashedSubject } from './subject.js';
import type { Hashing, SubjectKey } from './subject.js';

/** The subjects of one call: one for all rules, or by scope. */
export type HashedSubjects = HashedSubject | ReadonlyMap<string, HashedSubject>;

/** Blocks and resets belong to scope and subject, whatever the numbers: these fit every algorithm and burst. */
const ANY_NUMBERS: Plan = { limit: 1, windowSec: 0.001 };

/** The rules of one limiter, and what a call says of them by scope: subjects, costs, plans. All of it is checked here. */
export class RuleSet {
  readonly entries: readonly LimiterEntry[];
  /** In order. */
  readonly scopes: readonly string[];
  readonly #hashing: Hashing;

  constructor(entries: readonly LimiterEntry[], hashing: Hashing) {
    this.entries = entries;
    this.scopes = entries.map(({ template }) => template.scope);
    this.#hashing = hashing;
  }

  /** @throws TypeError or RangeError for options that would otherwise do nothing, or not what was meant. */
  check(options: CallOptions, known: readonly (keyof CallOptions)[]): void {
    checkNoCost(options, known);
    knownOptions(plainObject(options, 'the options of a call'), known, 'the options of a call');
    if (options.cost !== undefined) this.checkCosts(options.cost);
    if (isPlanMap(options.plan)) this.#checkScopes(Object.keys(options.plan));
  }

  checkCosts(costs: Costs): void {
    if (typeof costs === 'number') {
      checkCost(costs, 'cost');
      return;
    }
    if (typeof costs !== 'object' || (costs as unknown) === null || Array.isArray(costs)) {
      throw typeError(
        'ERR_LIMITKEEPER_COST',
        `cost must be a whole number ≥ 0, or { [scope]: number }, got ${received(costs)}.`,
        { option: 'cost' },
      );
    }
    if (Object.hasOwn(costs, 'cost') && !this.scopes.includes('cost')) {
      throw typeError(
        'ERR_LIMITKEEPER_COST',
        `cost must be the number itself, or { [scope]: number }, got an object with the name "cost". Write charge(subject, 3), settle(3) or refund(subject, decision, 3).`,
        { option: 'cost' },
      );
    }
    this.#checkScopes(Object.keys(costs));
    for (const [scope, cost] of Object.entries(costs))
      checkCost(cost, `the cost of scope ${JSON.stringify(scope)}`);
  }

  hash(subject: SubjectKey | HashedSubject): HashedSubject {
    return isHashedSubject(subject) ? subject : hashSubject(subject, this.#hashing);
  }

  hashAll(subjects: Subjects): HashedSubjects {
    if (!isSubjectMap(subjects)) return this.hash(subjects);
    checkPlainMap(subjects);
    const entries = Object.entries(subjects);
    this.#checkScopes(entries.map(([scope]) => scope));
    if (entries.length === 0) {
      throw typeError(
        'ERR_LIMITKEEPER_SUBJECT',
        'a subject must be a key, or { [scope]: key } for at least one scope, got an object without entries.',
      );
    }
    return new Map(entries.map(([scope, key]) => [scope, this.hash(key)]));
  }

  /**
   * The rule of this call; `undefined` where it takes no part, being off or unlimited.
   *
   * @throws TypeError `ERR_LIMITKEEPER_PLAN` where it lives by plans and the call has none for it.
   */
  ruleOf(entry: LimiterEntry, plan: CallOptions['plan']): Rule | undefined {
    const { template, own } = entry;
    if (template.mode === 'off') return undefined;
    const chosen = planFor(plan, template.scope);
    if (chosen === undefined && own !== undefined) return own;
    if (chosen === 'unlimited') return undefined;
    const scope = JSON.stringify(template.scope);
    if (chosen !== undefined) return template.at(chosen, `the plan of scope ${scope}: `);
    throw typeError(
      'ERR_LIMITKEEPER_PLAN',
      `scope ${scope} has no limit and windowSec of its own: pass { plan: { limit, windowSec } } with the call.`,
      { option: 'plan' },
    );
  }

  /** The rule for what does not depend on its numbers. */
  anyRuleOf({ template, own }: LimiterEntry): Rule | undefined {
    return template.mode === 'off' ? undefined : (own ?? template.at(ANY_NUMBERS));
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

/** `consume('alice', 3)`: what was meant is plain, and so is what to write. */
function checkNoCost(options: unknown, known: readonly (keyof CallOptions)[]): void {
  if (typeof options !== 'number' && typeof options !== 'bigint') return;
  const advice = known.includes('cost')
    ? `Write the cost as { cost: ${String(options)} }.`
    : `Known are: ${known.join(', ')}.`;
  throw typeError(
    'ERR_LIMITKEEPER_OPTION_TYPE',
    `the options of a call must be an object, got ${received(options)}. ${advice}`,
    { option: 'cost' },
  );
}

/** A request, a `Map` or any other thing with a class of its own names nobody, whatever its properties are called. */
function checkPlainMap(subjects: object): void {
  const prototype: unknown = Object.getPrototypeOf(subjects);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return;
  const advice =
    'headers' in subjects
      ? 'Of a request pass what names its client, e.g. clientIp(req), or a user id.'
      : 'Pass what names one client, e.g. a user id.';
  throw typeError(
    'ERR_LIMITKEEPER_SUBJECT',
    `a subject must be a key, or a plain object { [scope]: key }, got ${'then' in subjects ? 'a promise (await it)' : 'an object of a class'}. ${advice}`,
    { option: 'subject' },
  );
}

export function subjectFor(subjects: HashedSubjects, scope: string): HashedSubject | undefined {
  return isHashedSubject(subjects) ? subjects : subjects.get(scope);
}
