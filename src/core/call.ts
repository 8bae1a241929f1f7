import type { Decision } from './decision.js';
import type { HashedSubject } from './operation.js';
import { checkPlan } from './rule.js';
import type { Plan } from './rule.js';
import { isHashedSubject } from './subject.js';
import type { SubjectKey } from './subject.js';

/** One subject for all rules, or one for each scope. */
export type Subjects = SubjectKey | HashedSubject | Readonly<Record<string, SubjectKey | HashedSubject>>;
/** Units for all rules, or for each scope; a scope that is missing costs what its rule says, 1 by default. */
export type Costs = number | Readonly<Record<string, number>>;
export type PlanOrUnlimited = Plan | 'unlimited';

export interface CallOptions {
  readonly cost?: Costs;
  /** The numbers of this call, for all rules or for each scope, in place of the rules' own. */
  readonly plan?: PlanOrUnlimited | Readonly<Record<string, PlanOrUnlimited>>;
}

/** A reservation: when `decision.allowed`, settle it with the real cost or release it; left alone it lapses. */
export interface Reservation {
  readonly decision: Decision;
  settle(actual: Costs): Promise<Decision>;
  release(): Promise<Decision>;
}

/** A plain object maps scopes to subjects; an array, a text or a number is one subject. */
export function isSubjectMap(
  subject: Subjects,
): subject is Readonly<Record<string, SubjectKey | HashedSubject>> {
  return (
    typeof subject === 'object' &&
    !Array.isArray(subject) &&
    !isHashedSubject(subject) &&
    (subject as unknown) !== null
  );
}

export function costFor(costs: Costs | undefined, scope: string, other: number): number {
  const cost = typeof costs === 'object' && Object.hasOwn(costs, scope) ? costs[scope] : costs;
  // 0 more makes 0 of -0, which JSON, and so a receipt, would not keep.
  return (typeof cost === 'number' ? cost : other) + 0;
}

/** Plans by scope, and not one plan for all: plans stand in it, also under a scope that is called "limit". */
export function isPlanMap(plan: CallOptions['plan']): plan is Readonly<Record<string, PlanOrUnlimited>> {
  if (typeof plan !== 'object' || (plan as unknown) === null || Array.isArray(plan)) return false;
  return ['limit', 'windowSec'].every(name => {
    if (!Object.hasOwn(plan, name)) return true;
    const value = (plan as Readonly<Record<string, unknown>>)[name];
    return value === 'unlimited' || (typeof value === 'object' && value !== null && !Array.isArray(value));
  });
}

/**
 * The plan for one scope; `undefined` where the call names none for it.
 *
 * @throws TypeError where it names something that is none.
 */
export function planFor(plan: CallOptions['plan'], scope: string): PlanOrUnlimited | undefined {
  if (plan === undefined) return undefined;
  if (isPlanMap(plan) && !Object.hasOwn(plan, scope)) return undefined;
  const chosen = isPlanMap(plan) ? plan[scope] : plan;
  return chosen === 'unlimited' ? chosen : checkPlan(chosen, scope);
}
