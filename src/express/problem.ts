import type { Decision } from '../core/decision.js';

export { prefersProblem } from './accept.js';

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

/** What a refusal says of a decision. */
type Refused = Pick<Decision, 'reason' | 'scope' | 'readings'>;

export interface ProblemOptions {
  /** A sentence for people. Default: none. */
  readonly detail?: string | undefined;
}

/**
 * For presets, whose answers are documented to the letter: among the options of `rateLimit`, a `detail` for the problem form
 * alone, where the user gives no `message`.
 */
export const PROBLEM_DETAIL = Symbol('problem detail');

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
export function problemBody(decision: Refused, { detail }: ProblemOptions = {}): Problem {
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

function violatedScopes({ readings, scope }: Refused): readonly string[] {
  const refusing = readings.filter(reading => !reading.shadow && !reading.allowed);
  if (refusing.length > 0) return refusing.map(reading => reading.scope);
  return scope === null ? [] : [scope];
}

/**
 * The body for programs, as `application/json`. Stable: clients compare `error`. The `message` is for people, and belongs to
 * a refusal: that the store is away is something else.
 */
export function errorBody(
  decision: Refused,
  message?: string,
): { readonly error: string; readonly message?: string } {
  if (decision.reason === 'unavailable') return { error: 'rate_limiter_unavailable' };
  return { error: 'rate_limit_exceeded', ...(message === undefined ? {} : { message }) };
}
