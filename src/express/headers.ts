import type { Decision, RuleReading } from '../core/decision.js';

/**
 * Which headers a limiter sends. `false`: none at all, not even `Retry-After`. With both families off a refusal still
 * carries `Retry-After`, which belongs to the answer 429 itself and not to a family.
 */
export type HeaderOptions =
  | {
      /** `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset`. Default true. */
      readonly legacy?: boolean;
      /** `RateLimit` and `RateLimit-Policy` as structured fields (draft-ietf-httpapi-ratelimit-headers-08 to -12). Default true. */
      readonly standard?: boolean;
      /** Adds `retry-after-ms` to refusals, which some clients (AI SDKs) read before `Retry-After`. Default false. */
      readonly retryAfterMs?: boolean;
    }
  | false;

/** What one limiter has to say on a response. A later decision of the same limiter takes the place of its earlier one. */
export interface Announcement {
  readonly decision: Decision;
  readonly options?: HeaderOptions | undefined;
  /**
   * Where it allows, the reading that the `X-RateLimit-*` trio shows in place of the binding one: the tightest of the rules
   * that counted. `waiting`: none has, and the binding one is shown where no other limiter has anything better.
   */
  readonly shown?: RuleReading | 'waiting' | undefined;
}

/** RFC 9651, section 3.3.1: an Integer has at most 15 digits. */
const MAX_INTEGER = 999_999_999_999_999;

/** Reservations usually settle soon, so a client is told to come back in a second, however long the holds may last. */
const HELD_ADVICE_MS = 1000;

/**
 * The headers that tell a client of a decision; names as they are usually written, values as text. They serve any server,
 * and are empty where no enforced rule took part or where the store failed open.
 *
 * - `X-RateLimit-Limit`, `-Remaining`: of the binding rule. `X-RateLimit-Reset`: Unix time in seconds, rounded up; of a
 *   refusal the time of the decision + `Retry-After`, otherwise + `resetAfterMs`. Left out when it is never.
 * - `RateLimit-Policy: "api.ip";q=120;w=60` and `RateLimit: "api.ip";r=119;t=60`: every enforced rule. `q` is the capacity,
 *   `w` the window in seconds, `r` what remains, `t` the seconds until more does: left out when all of it does or more
 *   never will, and never later than `Retry-After`.
 * - `Retry-After`: whole seconds, rounded up, at least 1, on refusals that end. Waiting that long passes if nothing else
 *   happens; where only reservations stand in the way it is 1, as advice.
 *
 * @example
 * const decision = await limiter.consume(address);
 * response.writeHead(decision.allowed ? 200 : 429, decisionHeaders(decision));
 */
export function decisionHeaders(decision: Decision, options: HeaderOptions = {}): Record<string, string> {
  return mergedHeaders([{ decision, options }]);
}

/**
 * The headers of one response on which several limiters have something to say, in the order in which they decided: the
 * `X-RateLimit-*` trio of the tightest, the policies of all, and the longest wait. So no limiter hides a tighter one.
 *
 * A decision that refuses makes `Retry-After` whatever the status of the response is: the fifth wrong password is answered
 * 401 by its handler, and its settled reading says that the block has begun.
 */
export function mergedHeaders(announcements: readonly Announcement[]): Record<string, string> {
  const wait = longestWait(announcements);
  const retryAfter = wait.ms === undefined ? undefined : Math.max(1, seconds(wait.ms));
  const headers: Record<string, string> = {};
  addLegacy(headers, announcements, retryAfter);
  addStandard(headers, announcements, retryAfter);
  if (wait.ms !== undefined && retryAfter !== undefined) {
    headers['Retry-After'] = String(retryAfter);
    if (wait.inMs) headers['retry-after-ms'] = String(Math.max(1, whole(wait.ms)));
  }
  return headers;
}

/** In seconds; `undefined` where nothing refuses, or where no waiting helps. */
type RetryAfter = number | undefined;

function addLegacy(
  headers: Record<string, string>,
  announcements: readonly Announcement[],
  retryAfter: RetryAfter,
): void {
  let tightest: Headline | undefined;
  for (const { decision, options = {}, shown } of announcements) {
    if (options === false || options.legacy === false || decision.limit === null) continue;
    const reading = typeof shown === 'object' ? shown : decision;
    const headline = { reading, at: decision.at, waits: shown === 'waiting' };
    if (tightest === undefined || goesBefore(headline, tightest)) tightest = headline;
  }
  if (tightest === undefined) return;
  const { reading } = tightest;
  headers['X-RateLimit-Limit'] = String(whole(reading.limit ?? 0));
  headers['X-RateLimit-Remaining'] = String(whole(reading.remaining ?? 0));
  const reset = resetTime(reading, tightest.at, retryAfter);
  if (reset !== undefined) headers['X-RateLimit-Reset'] = String(reset);
}

/** What one limiter would have the trio say. */
interface Headline {
  readonly reading: Pick<Decision, 'allowed' | 'limit' | 'remaining' | 'retryAfterMs' | 'resetAfterMs'>;
  readonly at: number;
  readonly waits: boolean;
}

/** Refusing first, then what has counted, then the tightest. */
function goesBefore(a: Headline, b: Headline): boolean {
  const isSettled = a.reading.allowed === b.reading.allowed && a.waits !== b.waits;
  return isSettled ? b.waits : isTighter(a.reading, b.reading);
}

/** Unix seconds. The time of the decision has a fraction of its own, so it is rounded up as well: sleeping until then passes. */
function resetTime(
  { allowed, resetAfterMs }: Headline['reading'],
  at: number,
  retryAfter: RetryAfter,
): number | undefined {
  if (!allowed) return retryAfter === undefined ? undefined : seconds(at) + retryAfter;
  return resetAfterMs === null ? undefined : seconds(at + resetAfterMs);
}

function addStandard(
  headers: Record<string, string>,
  announcements: readonly Announcement[],
  retryAfter: RetryAfter,
): void {
  // By name: the draft forbids two entries of one policy, and two limiters may share a scope.
  const readings = new Map<string, RuleReading>();
  for (const { decision, options = {} } of announcements) {
    if (options === false || options.standard === false) continue;
    for (const reading of decision.readings) {
      if (reading.shadow) continue;
      const name = quoted(reading.scope);
      const earlier = readings.get(name);
      if (earlier === undefined || isTighter(reading, earlier)) readings.set(name, reading);
    }
  }
  if (readings.size === 0) return;
  const policies: string[] = [];
  const states: string[] = [];
  for (const [name, { limit, windowMs, remaining, moreAfterMs }] of readings) {
    policies.push(`${name};q=${String(whole(limit))};w=${String(seconds(windowMs))}`);
    const more = moreAfterMs === null ? 0 : Math.min(seconds(moreAfterMs), retryAfter ?? MAX_INTEGER);
    states.push(`${name};r=${String(whole(remaining))}${more === 0 ? '' : `;t=${String(more)}`}`);
  }
  headers['RateLimit-Policy'] = policies.join(', ');
  headers['RateLimit'] = states.join(', ');
}

/** What decisions and readings have in common. */
interface Tightness {
  readonly allowed: boolean;
  readonly remaining: number | null;
  readonly retryAfterMs: number | null;
}

/** Refusing before allowing, then the fewest remaining, then the longest wait. Ties stay with the first. */
function isTighter(a: Tightness, b: Tightness): boolean {
  if (a.allowed !== b.allowed) return !a.allowed;
  const [left, right] = [a.remaining ?? 0, b.remaining ?? 0];
  return left === right ? (a.retryAfterMs ?? Infinity) > (b.retryAfterMs ?? Infinity) : left < right;
}

/** The wait that satisfies every refusal; `ms` is undefined where nothing refuses, or one of them for ever. */
function longestWait(announcements: readonly Announcement[]): {
  readonly ms: number | undefined;
  readonly inMs: boolean;
} {
  let longest: number | undefined;
  let inMs = false;
  for (const { decision, options = {} } of announcements) {
    if (options === false || decision.allowed) continue;
    const ms = waitOf(decision);
    if (ms === null) return { ms: undefined, inMs };
    longest = Math.max(longest ?? 0, ms);
    inMs ||= options.retryAfterMs === true;
  }
  return { ms: longest, inMs };
}

/**
 * Of one refused decision. Every refusing rule counts and not only the binding one: that may be a rule with long holds,
 * for which a second is advised, beside a rule that is used up for half a minute and would refuse after that second.
 */
function waitOf(decision: Decision): number | null {
  if (decision.reason === 'unavailable') return decision.retryAfterMs ?? 0;
  const refusing = decision.readings.filter(reading => !reading.shadow && !reading.allowed);
  let longest = 0;
  for (const { reason, retryAfterMs } of refusing.length === 0 ? [decision] : refusing) {
    if (retryAfterMs === null) return null;
    longest = Math.max(longest, reason === 'held' ? Math.min(HELD_ADVICE_MS, retryAfterMs) : retryAfterMs);
  }
  return longest;
}

/** A structured-field String: printable ASCII. Everything else, and `%` itself, is percent-encoded, so names stay apart. */
function quoted(scope: string): string {
  const ascii = scope.toWellFormed().replace(/[^\x20-\x7e]|%/gu, encodeURIComponent);
  return `"${ascii.replace(/["\\]/g, '\\$&')}"`;
}

function whole(value: number): number {
  return Math.min(Math.max(0, Math.ceil(value)), MAX_INTEGER);
}

/** Rounded up. */
function seconds(ms: number): number {
  return whole(ms / 1000);
}
