import type { Request, Response } from 'express';
import { isLimitkeeperError, received, typeError } from '../core/errors.js';
import { checkCost } from '../core/limiter-options.js';
import { all, chain, isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import type { BatchItem, Operation } from '../core/operation.js';
import { checkPlan } from '../core/rule.js';
import type { Plan, Rule } from '../core/rule.js';
import { hashSubject } from '../core/subject.js';
import type { Hashing } from '../core/subject.js';
import { clientIp } from './client-ip.js';
import type { RequestRule } from './options.js';
import type { RuleRun } from './request-state.js';

/**
 * Request → what each rule has to decide: `when`, the numbers, the subject and the cost, each asked once. Rules that are no
 * part of the request are left out. An error of a callback, or a bad result, is thrown or rejected; nothing is charged.
 */
export function resolveRules(
  rules: readonly RequestRule[],
  req: Request,
  res: Response,
  hashing: Hashing,
): MaybePromise<RuleRun[]> {
  const runs: MaybePromise<RuleRun | undefined>[] = [];
  try {
    for (const rule of rules) runs.push(resolveRule(rule, req, res, hashing));
  } catch (error) {
    // The first error is the one that is told. Those still to come must not end the process as unhandled rejections.
    for (const run of runs) if (isPromise(run)) run.catch(() => undefined);
    throw error;
  }
  return chain(all(runs), list => list.filter(run => run !== undefined));
}

function resolveRule(
  rule: RequestRule,
  req: Request,
  res: Response,
  hashing: Hashing,
): MaybePromise<RuleRun | undefined> {
  const { options, template, where } = rule;
  if (template.mode === 'off') return undefined;
  return chain(options.when?.(req, res), applies => {
    // Strictly false: a forgotten `return` must not switch a rule off.
    if (applies === false) return undefined;
    return chain(numbersOf(rule, req, res), numbers => {
      if (numbers === undefined) return undefined;
      const key: unknown =
        options.keyFn === undefined ? clientIp(req, hashing.ipv6Prefix) : options.keyFn(req, res);
      return chain(key, value => {
        const subject = naming(`${where}keyFn`, () => hashSubject(value, hashing));
        const cost = typeof options.cost === 'function' ? options.cost(req, res) : (options.cost ?? 1);
        return chain(cost, units => {
          const checked = naming(`${where}cost`, () =>
            checkCost(units, `the cost of scope ${JSON.stringify(template.scope)}`),
          );
          return runOf(rule, { rule: numbers, subject, operation: operationFor(rule, checked) }, checked);
        });
      });
    });
  });
}

function runOf(rule: RequestRule, item: BatchItem, cost: number): RuleRun {
  return {
    rule,
    item,
    cost,
    reading: undefined,
    taken: false,
    charged: false,
    refused: false,
    actual: undefined,
    spent: false,
    estimate: undefined,
  };
}

/** The rule with the numbers of this request; `undefined` for an unlimited one. */
function numbersOf(rule: RequestRule, req: Request, res: Response): MaybePromise<Rule | undefined> {
  const { fixed, template, options, where } = rule;
  if (fixed !== undefined) return fixed;
  const scope = JSON.stringify(template.scope);
  const { plan, limit } = options;
  if (plan !== undefined) {
    return chain(plan(req, res), (chosen): Rule | undefined =>
      chosen === 'unlimited'
        ? undefined
        : naming(`${where}plan`, () =>
            template.at(checkPlan(chosen, template.scope), `the plan of scope ${scope}: `),
          ),
    );
  }
  if (typeof limit !== 'function') {
    throw typeError(
      'ERR_LIMITKEEPER_PLAN',
      `scope ${scope} has neither a limit nor a plan, got ${received(limit)}.`,
    );
  }
  return chain(limit(req, res), units => {
    const numbers = { limit: units, windowSec: options.windowSec } as Plan;
    return naming(`${where}limit`, () =>
      template.at(numbers, `the result of the function limit of scope ${scope}: `),
    );
  });
}

/** An error about what a callback answered names the option that the callback was given as. */
function naming<T>(option: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw isLimitkeeperError(error) ? Object.assign(error, { option }) : error;
  }
}

/** Who counts by outcome holds the units until it is known, or (not strict) only looks first. */
function operationFor(rule: RequestRule, cost: number): Operation {
  if (rule.reserve) return { type: 'reserve', cost };
  if (rule.count === 'all') return { type: 'consume', cost };
  return { type: rule.strict ? 'reserve' : 'peek', cost };
}
