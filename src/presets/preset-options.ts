import { knownOptions, plainObject } from '../core/validate.js';
import { isLimitkeeperError } from '../core/errors.js';
import type { FailMode } from '../core/events.js';
import { refuseRequest } from '../core/uncalled.js';
import type { RateLimitOptions, RuleOptions } from '../express/types.js';

/** What a preset shares with `rateLimit`, where each of these is described. */
export interface PresetSettings extends Pick<
  RateLimitOptions,
  | 'store'
  | 'storeTimeoutMs'
  | 'hashSecret'
  | 'ipv6Prefix'
  | 'outcome'
  | 'skip'
  | 'countPreflight'
  | 'onLimited'
  | 'message'
  | 'headers'
> {
  /**
   * What happens when the store fails: `open` lets pass, `closed` refuses with 503, `local` counts in this process until
   * the store is back. Default of `apiLimits`: `open`; of `loginLimits`: `local`.
   */
  readonly failMode?: FailMode;
}

/** What may be changed of one rule of a preset; what is left out keeps the preset's value. Each as in `rateLimit`. */
export interface PresetRule extends Partial<
  Pick<RuleOptions, 'scope' | 'blockSec' | 'algorithm' | 'burst' | 'align' | 'mode' | 'keyFn'>
> {
  /** Units a window: requests, or failures where the rule counts those. */
  readonly limit?: Exclude<RuleOptions['limit'], undefined>;
  /** Seconds. */
  readonly windowSec?: number;
}

/** The same of a rule that counts failures. */
export interface PresetFailureRule extends PresetRule, Partial<Pick<RuleOptions, 'strict'>> {}

const SETTING_NAMES = [
  'store',
  'failMode',
  'storeTimeoutMs',
  'hashSecret',
  'ipv6Prefix',
  'outcome',
  'skip',
  'countPreflight',
  'onLimited',
  'message',
  'headers',
] as const satisfies readonly (keyof PresetSettings)[];

const RULE_NAMES = [
  'scope',
  'limit',
  'windowSec',
  'blockSec',
  'algorithm',
  'burst',
  'align',
  'mode',
  'keyFn',
] as const satisfies readonly (keyof PresetRule)[];

/** @throws TypeError `ERR_LIMITKEEPER_UNKNOWN_OPTION` or `_OPTION_TYPE`. */
export function checkNames(options: object, own: readonly string[], where: string): void {
  const names: readonly string[] = RULE_NAMES;
  const [example = ''] = own.filter(name => name === 'password' || name === 'ip');
  const given = plainObject(options, `the options of ${where}`);
  refuseRequest(given, `Call it: ${where}(), or ${where}({ … }).`);
  knownOptions(given, [...own, ...SETTING_NAMES], where, name =>
    names.includes(name) ? `It belongs to one of the rules: ${example}: { ${name}: … }.` : undefined,
  );
}

/** The settings that were given, without those that belong to the preset alone. */
export function settingsOf(options: PresetSettings): PresetSettings {
  return Object.fromEntries(
    SETTING_NAMES.filter(name => options[name] !== undefined).map(name => [name, options[name]]),
  );
}

/** A rule of the preset with the user's changes; an `undefined` changes nothing. */
export function changed(
  rule: RuleOptions,
  changes: PresetRule | PresetFailureRule | undefined,
  option: string,
): RuleOptions {
  if (changes === undefined) return rule;
  const known = rule.count === 'failures' ? [...RULE_NAMES, 'strict'] : RULE_NAMES;
  knownOptions(plainObject(changes, option), known, option);
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  return { ...rule, ...Object.fromEntries(given) };
}

/** The same of a rule that is off until it is asked for. */
export function optionalRule(
  rule: RuleOptions,
  chosen: boolean | PresetRule | PresetFailureRule | undefined,
  option: string,
): RuleOptions | undefined {
  if (chosen === undefined || chosen === false) return undefined;
  return changed(rule, chosen === true ? undefined : chosen, option);
}

/** Lets an error that speaks of `rules[1].limit` speak of the option that the user wrote, e.g. `password.limit`. */
export function namingOptions<T>(names: readonly string[], make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (isLimitkeeperError(error)) {
      const rename = (text: string): string =>
        text.replace(/rules\[(\d+)\]/g, (found, i) => names[Number(i)] ?? found);
      error.message = rename(error.message);
      if (error.option !== undefined) Object.assign(error, { option: rename(error.option) });
    }
    throw error;
  }
}
