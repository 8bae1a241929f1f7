import type { Decision } from '../core/decision.js';

/** An RFC 9457 problem, as `application/problem+json`. The types are those of draft-ietf-httpapi-ratelimit-headers. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  /** 429, or 503 where the store failed and the limiter fails closed. */
  readonly status: 429 | 503;
  /** For people: the `message` option. */
  readonly detail?: string;
  /** The scopes of the rules that refused. */
  readonly 'violated-policies'?: readonly string[];
}

export interface ProblemOptions {
  /** A sentence for people. Default: none. */
  readonly detail?: string | undefined;
}

const TYPES = 'https://iana.org/assignments/http-problem-types';

/**
 * The body of a refusal as an RFC 9457 problem: `#quota-exceeded` with the scopes that refused, or
 * `#temporary-reduced-capacity` where the store failed. It names rules and never whom they count.
 *
 * @example
 * problemBody(decision, { detail: 'Please wait a minute.' });
 * // { type: 'https://iana.org/assignments/http-problem-types#quota-exceeded', title: …, status: 429,
 * //   detail: 'Please wait a minute.', 'violated-policies': ['api.ip'] }
 */
export function problemBody(decision: Decision, { detail }: ProblemOptions = {}): Problem {
  const forPeople = detail === undefined ? {} : { detail };
  if (decision.reason === 'unavailable') {
    return {
      type: `${TYPES}#temporary-reduced-capacity`,
      title: 'Request cannot be satisfied due to temporary server capacity constraints',
      status: 503,
      ...forPeople,
    };
  }
  return {
    type: `${TYPES}#quota-exceeded`,
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
    status: 429,
    ...forPeople,
    'violated-policies': violatedScopes(decision),
  };
}

function violatedScopes({ readings, scope }: Decision): readonly string[] {
  const refusing = readings.filter(reading => !reading.shadow && !reading.allowed);
  if (refusing.length > 0) return refusing.map(reading => reading.scope);
  return scope === null ? [] : [scope];
}

/** The body for programs, as `application/json`. Stable: clients compare it. */
export function errorBody(decision: Decision): { readonly error: string } {
  return {
    error: decision.reason === 'unavailable' ? 'rate_limiter_unavailable' : 'rate_limit_exceeded',
  };
}

/**
 * Does an `Accept` header (RFC 9110, section 12.5.1) ask for `application/problem+json` rather than `application/json`?
 * By weight, then by how precisely the type is named, then by order, as Express's `req.accepts` does; without a preference
 * it is plain JSON.
 */
export function prefersProblem(accept: string | undefined): boolean {
  if (accept === undefined || !/problem|\*/i.test(accept)) return false;
  const ranges = split(accept, ',').flatMap(parseRange);
  const problem = match(ranges, 'problem+json');
  const json = match(ranges, 'json');
  if (problem.weight === 0) return false;
  if (problem.weight !== json.weight) return problem.weight > json.weight;
  if (problem.precision !== json.precision) return problem.precision > json.precision;
  return problem.index < json.index;
}

interface Range {
  readonly type: string;
  readonly weight: number;
}

interface Match {
  readonly weight: number;
  /** 2 for a named type, 1 for `application/*`, 0 for any type. */
  readonly precision: number;
  readonly index: number;
}

/** The most precise range that covers the type; its weight holds even when a wider range has a greater one. */
function match(ranges: readonly Range[], subtype: string): Match {
  for (const [i, name] of [`application/${subtype}`, 'application/*', '*/*'].entries()) {
    const index = ranges.findIndex(range => range.type === name);
    const range = ranges[index];
    if (range !== undefined) return { weight: range.weight, precision: 2 - i, index };
  }
  return { weight: 0, precision: 0, index: Infinity };
}

/** None where the range is malformed, or asks for a parameter that our answers do not have. */
function parseRange(text: string): Range[] {
  const [type = '', ...parameters] = split(text, ';').map(part => part.trim().toLowerCase());
  let weight = 1;
  for (const parameter of parameters) {
    const [, name = '', value = ''] = /^([^\s=]+)\s*=\s*"?([^"]*)"?$/.exec(parameter) ?? [];
    if (name === 'q') {
      if (!/^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(value)) return [];
      weight = Number(value);
      // What follows the weight are extensions of Accept itself, not of the type.
      break;
    }
    if (parameter !== '' && !(name === 'charset' && /^utf-?8$/.test(value))) return [];
  }
  return [{ type, weight }];
}

/** Splits at a separator outside quoted strings. */
function split(text: string, separator: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let inQuotes = false;
  for (let i = 0; i < text.length; i += 1) {
    const character = text[i];
    if (character === '\\' && inQuotes) i += 1;
    else if (character === '"') inQuotes = !inQuotes;
    else if (character === separator && !inQuotes) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
