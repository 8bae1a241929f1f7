import type { Request, Response } from 'express';
import { Check } from '../core/check.js';
import { isLimitkeeperError, received, typeError } from '../core/errors.js';
import { checkCost } from '../core/limiter-options.js';
import { chain, isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import type { HashedSubject, Operation } from '../core/operation.js';
import { checkPlan } from '../core/rule.js';
import type { Plan, Rule } from '../core/rule.js';
import { hashSubject, subjectOfAddress } from '../core/subject.js';
import type { Hashing } from '../core/subject.js';
import { clientIp } from './client-ip.js';
import { operationFor } from './options.js';
import type { RequestRule } from './options.js';

/** A check for each rule; `undefined` for one that is no part of the request. */
type Resolved = readonly (Check | undefined)[];

/**
 * Request → what each rule has to decide: `when`, the numbers, the subject and the cost, each asked once. An error of a
 * callback, or a bad result, is thrown or rejected; nothing is charged.
 */
export function resolveRules(
  rules: readonly RequestRule[],
  req: Request,
  res: Response,
  hashing: Hashing,
): MaybePromise<Resolved> {
  const request = new Resolving(req, res, hashing);
  const checks = new Array<MaybePromise<Check | undefined>>(rules.length);
  let isLater = false;
  try {
    let i = 0;
    for (const rule of rules) {
      const check = resolveRule(rule, request);
      checks[i++] = check;
      isLater ||= check instanceof Promise;
    }
  } catch (error) {
    // The first error is the one that is told. Those still to come must not end the process as unhandled rejections.
    for (const check of checks) if (check instanceof Promise) check.catch(() => undefined);
    throw error;
  }
  return isLater ? Promise.all(checks as readonly Promise<Check | undefined>[]) : (checks as Resolved);
}

/** One request while its rules are resolved. All that count by address share its one subject. */
class Resolving {
  readonly req: Request;
  readonly res: Response;
  readonly hashing: Hashing;
  #address: HashedSubject | undefined = undefined;

  constructor(req: Request, res: Response, hashing: Hashing) {
    this.req = req;
    this.res = res;
    this.hashing = hashing;
  }

  get address(): HashedSubject {
    return (this.#address ??= subjectOfAddress(clientIp(this.req, this.hashing.ipv6Prefix), this.hashing));
  }
}

/** The usual rule has its numbers and its cost at hand, and only its key is asked for. */
function resolveRule(rule: RequestRule, request: Resolving): MaybePromise<Check | undefined> {
  const { fixed, operation, options } = rule;
  if (options.when !== undefined || fixed === undefined || operation === undefined)
    return resolveAsked(rule, request);
  if (rule.isOff) return undefined;
  const subject = subjectOf(rule, request);
  return isPromise(subject)
    ? subject.then(hashed => new Check(fixed, hashed, operation))
    : new Check(fixed, subject, operation);
}

function resolveAsked(rule: RequestRule, request: Resolving): MaybePromise<Check | undefined> {
  const { options, operation } = rule;
  const { req, res } = request;
  if (rule.isOff) return undefined;
  return chain(options.when?.(req, res), applies => {
    // Strictly false: a forgotten `return` must not switch a rule off.
    if (applies === false) return undefined;
    return chain(numbersOf(rule, req, res), numbers => {
      if (numbers === undefined) return undefined;
      return chain(subjectOf(rule, request), subject =>
        chain(operation ?? costOf(rule, req, res), asked => new Check(numbers, subject, asked)),
      );
    });
  });
}

function subjectOf({ options, where }: RequestRule, request: Resolving): MaybePromise<HashedSubject> {
  const { req, res, hashing } = request;
  if (options.keyFn === undefined) return request.address;
  const key: unknown = options.keyFn(req, res);
  if (isPromise(key)) return Promise.resolve(key).then(value => hashed(value, hashing, where));
  return hashed(key, hashing, where);
}

function hashed(key: unknown, hashing: Hashing, where: string): HashedSubject {
  try {
    return hashSubject(key, hashing);
  } catch (error) {
    throw naming(`${where}keyFn`, error);
  }
}

function costOf(rule: RequestRule, req: Request, res: Response): MaybePromise<Operation> {
  const { options, template, where } = rule;
  const cost = typeof options.cost === 'function' ? options.cost(req, res) : 1;
  return chain(cost, units => {
    try {
      return operationFor(rule, checkCost(units, `the cost of scope ${JSON.stringify(template.scope)}`));
    } catch (error) {
      throw naming(`${where}cost`, error);
    }
  });
}

/** The rule with the numbers of this request; `undefined` for an unlimited one. */
function numbersOf(rule: RequestRule, req: Request, res: Response): MaybePromise<Rule | undefined> {
  const { fixed, template, options, where } = rule;
  if (fixed !== undefined) return fixed;
  const scope = JSON.stringify(template.scope);
  const { plan, limit } = options;
  if (plan !== undefined) {
    return chain(plan(req, res), (chosen): Rule | undefined => {
      if (chosen === 'unlimited') return undefined;
      try {
        return template.at(checkPlan(chosen, template.scope), `the plan of scope ${scope}: `);
      } catch (error) {
        throw naming(`${where}plan`, error);
      }
    });
  }
  if (typeof limit !== 'function') {
    throw typeError(
      'ERR_LIMITKEEPER_PLAN',
      `scope ${scope} has neither a limit nor a plan, got ${received(limit)}.`,
    );
  }
  return chain(limit(req, res), units => {
    const numbers = { limit: units, windowSec: options.windowSec } as Plan;
    try {
      return template.at(numbers, `the result of the function limit of scope ${scope}: `);
    } catch (error) {
      throw naming(`${where}limit`, error);
    }
  });
}

/** An error about what a callback answered names the option that the callback was given as. */
function naming(option: string, error: unknown): unknown {
  return isLimitkeeperError(error) ? Object.assign(error, { option }) : error;
}
