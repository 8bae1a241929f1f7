import { createHash } from 'node:crypto';
import { RuleTemplate } from '../core/rule.js';
import type { Rule } from '../core/rule.js';

const PREFIX = 'rate-check.';
/** What stands for all of them where scopes are named. */
export const ANY_SCOPE = `${PREFIX}*`;
const SCOPE = /^rate-check\.[\da-f]{64}$/;

/**
 * The scope of an endpoint. Any text is an endpoint, while a scope is short and has no control characters: so it is named by
 * a hash, of the JSON form, which keeps lone surrogates apart. Two endpoints never share a counter.
 */
export function scopeOf(endpoint: string): string {
  return PREFIX + createHash('sha256').update(JSON.stringify(endpoint)).digest('hex');
}

/** Is it the scope of one of our endpoints? Other limiters may count the same user in the same store. */
export function isEndpointScope(scope: string): boolean {
  return SCOPE.test(scope);
}

/** @throws TypeError or RangeError for a limit or a window that makes no rule. */
export function ruleOf(endpoint: string, limit: number, windowSec: number): Rule {
  return new RuleTemplate({ scope: scopeOf(endpoint), algorithm: 'sliding-log' }).at({ limit, windowSec });
}
