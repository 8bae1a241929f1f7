import { knownOptions, optionalBoolean, optionalFunction, oneOf, plainObject } from '../core/validate.js';
import { received, typeError } from '../core/errors.js';
import {
  adviseList,
  checkCost,
  checkScopesDiffer,
  ruleList,
  SETTING_OPTIONS,
} from '../core/limiter-options.js';
import type { LimiterOptions, LimiterRule } from '../core/limiter-options.js';
import type { Operation } from '../core/operation.js';
import { RuleTemplate } from '../core/rule.js';
import type { Rule } from '../core/rule.js';
import { refuseRequest } from '../core/uncalled.js';
import type { RateLimitOptions, RuleOptions } from './types.js';

/** A rule of the middleware, checked. */
export interface RequestRule {
  readonly options: RuleOptions;
  readonly template: RuleTemplate;
  /** What the names of its options begin with in errors: `''`, or `'rules[1].'`. */
  readonly where: string;
  /** The rule where its numbers are the same for every request. */
  readonly fixed: Rule | undefined;
  /** What it asks, where it costs the same for every request. */
  readonly operation: Operation | undefined;
  readonly isOff: boolean;
  readonly count: 'all' | 'failures' | 'successes';
  readonly strict: boolean;
  readonly reserve: boolean;
  readonly resetOnSuccess: boolean;
}

/** Does the outcome of a request matter to this rule? */
export function needsOutcome(rule: RequestRule): boolean {
  return rule.count !== 'all' || rule.resetOnSuccess;
}

/** Does the end of a request matter to this rule? */
export function hasLooseEnd(rule: RequestRule): boolean {
  return rule.reserve || needsOutcome(rule);
}

/** Does this rule tell clients apart by their addresses alone? */
export function countsByAddress({ options, template }: RequestRule): boolean {
  return options.keyFn === undefined && template.mode !== 'off';
}

const RULE_NAMES = [
  'scope',
  'limit',
  'windowSec',
  'plan',
  'blockSec',
  'keyFn',
  'when',
  'algorithm',
  'burst',
  'align',
  'mode',
  'cost',
  'reserve',
  'holdSec',
  'count',
  'strict',
  'resetOnSuccess',
] as const satisfies readonly (keyof RuleOptions)[];

const MIDDLEWARE_NAMES = [
  ...SETTING_OPTIONS,
  'outcome',
  'skip',
  'countPreflight',
  'onLimited',
  'message',
  'headers',
] as const satisfies readonly (keyof RateLimitOptions)[];

/**
 * Every mistake that can be seen without a request.
 *
 * @throws TypeError or RangeError with a `code`, naming the option, what was expected and what came.
 */
export function requestRules(options: RateLimitOptions): readonly RequestRule[] {
  refuseRequest(plainObject(options, 'options'), 'Call it: app.use(rateLimit({ … })).');
  const hasList = 'rules' in options;
  const known = hasList ? ['rules', ...MIDDLEWARE_NAMES] : [...RULE_NAMES, ...MIDDLEWARE_NAMES];
  if (hasList) knownOptions(options, known, 'the options of rateLimit with rules', adviseList(RULE_NAMES));
  else knownOptions(options, known, 'the options of rateLimit');
  checkMiddlewareOptions(options);
  const rules = hasList
    ? ruleList(options.rules).map((rule, i) => {
        const where = `rules[${String(i)}]`;
        knownOptions(plainObject(rule, where), RULE_NAMES, where);
        return requestRule(rule as RuleOptions, `${where}.`);
      })
    : [requestRule(options, '')];
  checkScopesDiffer(rules.map(({ template }) => template.scope));
  const judged = rules.find(needsOutcome);
  if (judged !== undefined && options.outcome === undefined) {
    throw typeError(
      'ERR_LIMITKEEPER_OUTCOME_REQUIRED',
      `outcome is required, because scope ${JSON.stringify(judged.template.scope)} depends on how requests end. ` +
        "Pass outcome: byStatus, or a function that returns 'success', 'failure' or 'ignore'.",
      { option: 'outcome' },
    );
  }
  return rules;
}

/** The same limiter without Express: what a request decides comes with each call. */
export function limiterOptions(options: RateLimitOptions, rules: readonly RequestRule[]): LimiterOptions {
  const settings = Object.fromEntries(
    SETTING_OPTIONS.filter(name => options[name] !== undefined).map(name => [name, options[name]]),
  );
  const coreRules = rules.map(({ options: rule }): LimiterRule => {
    const { scope, blockSec, algorithm, burst, align, mode, holdSec, limit, windowSec, cost } = rule;
    const core = { scope, blockSec, algorithm, burst, align, mode, holdSec };
    const numbers = typeof limit === 'number' ? { limit, windowSec } : {};
    const all = { ...core, ...numbers, ...(typeof cost === 'number' ? { cost } : {}) };
    return Object.fromEntries(
      Object.entries(all).filter(([, value]) => value !== undefined),
    ) as unknown as LimiterRule;
  });
  return { ...settings, rules: coreRules };
}

function checkMiddlewareOptions(options: RateLimitOptions): void {
  for (const name of ['outcome', 'skip', 'onLimited'] as const) optionalFunction(options[name], name);
  optionalBoolean(options.countPreflight, 'countPreflight');
  if (options.message !== undefined && typeof options.message !== 'string') {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `message must be a string, got ${received(options.message)}.`,
      {
        option: 'message',
      },
    );
  }
  const { headers } = options;
  if (headers === undefined || headers === false) return;
  const names = ['legacy', 'standard', 'retryAfterMs'] as const;
  knownOptions(plainObject(headers, 'headers'), names, 'headers');
  for (const name of names) optionalBoolean(headers[name], `headers.${name}`);
}

function requestRule(options: RuleOptions, where: string): RequestRule {
  const template = new RuleTemplate(options, where);
  const { count = 'all', strict, reserve = false, resetOnSuccess = false, cost } = options;
  oneOf(count, `${where}count`, ['all', 'failures', 'successes']);
  for (const name of ['keyFn', 'when', 'plan'] as const) optionalFunction(options[name], `${where}${name}`);
  for (const name of ['strict', 'reserve', 'resetOnSuccess'] as const)
    optionalBoolean(options[name], `${where}${name}`);
  if (strict !== undefined && count === 'all') {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `${where}strict applies to rules with count: 'failures' or 'successes'; this one counts all requests.`,
      { option: `${where}strict` },
    );
  }
  if (resetOnSuccess && options.keyFn === undefined) {
    throw typeError(
      'ERR_LIMITKEEPER_KEY_REQUIRED',
      `${where}resetOnSuccess needs a keyFn: with the address alone, an attacker clears it by logging in to an account of his own. ` +
        'Use e.g. keyFn: req => [String(req.body.email).toLowerCase(), clientIp(req)].',
      { option: `${where}resetOnSuccess` },
    );
  }
  const rule = { options, template, where, count, strict: strict ?? true, reserve, resetOnSuccess };
  return {
    ...rule,
    fixed: fixedRule(options, template, where),
    operation:
      typeof cost === 'function' ? undefined : operationFor(rule, checkCost(cost ?? 1, `${where}cost`)),
    isOff: template.mode === 'off',
  };
}

/** Who counts by outcome holds the units until it is known, or (not strict) only looks first. */
export function operationFor(
  { reserve, count, strict }: Pick<RequestRule, 'reserve' | 'count' | 'strict'>,
  cost: number,
): Operation {
  if (reserve) return { type: 'reserve', cost };
  if (count === 'all') return { type: 'consume', cost };
  return { type: strict ? 'reserve' : 'peek', cost };
}

function fixedRule(options: RuleOptions, template: RuleTemplate, where: string): Rule | undefined {
  const { limit, windowSec, plan } = options as { limit?: unknown; windowSec?: unknown; plan?: unknown };
  if (plan !== undefined) {
    if (limit === undefined && windowSec === undefined) return undefined;
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `${where}plan takes the place of limit and windowSec: leave those two out, and return them from plan.`,
      { option: `${where}plan` },
    );
  }
  if (typeof limit !== 'function')
    return template.at({ limit, windowSec } as { limit: number; windowSec: number });
  // Its result is checked for each request; the window and the rest can be checked now, with a limit that fits.
  template.at({ limit: 1, windowSec: windowSec as number });
  return undefined;
}
