import type { Decision, RuleReading } from '../core/decision.js';
import { MAX_INTEGER, policyText, seconds, whole } from './policy-text.js';
import type { PolicyText } from './policy-text.js';

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

/** What of a decision becomes headers. */
export type Told = Pick<
  Decision,
  'allowed' | 'reason' | 'limit' | 'remaining' | 'retryAfterMs' | 'resetAfterMs' | 'at' | 'readings'
>;

/** What one limiter has to say on a response. A later decision of the same limiter takes the place of its earlier one. */
export interface Announcement {
  /** `undefined`: nothing to tell. */
  readonly told: Told | undefined;
  readonly headers?: HeaderOptions | undefined;
  /**
   * Where it allows, the reading that the `X-RateLimit-*` trio shows in place of the binding one: the tightest of the rules
   * that counted. `waiting`: none has, and the binding one is shown where no other limiter has anything better.
   */
  readonly shown?: RuleReading | 'waiting' | undefined;
}

/** Where headers go: a response, or a list of them. */
interface HeaderSink {
  setHeader(name: string, value: string): unknown;
}

/** All that are ever sent, in this order; which of them were is told in bits. */
const LIMIT = 1;
const REMAINING = 2;
const RESET = 4;
const STANDARD = 8;
const RETRY = 16;
const RETRY_MS = 32;
const NAMES: readonly (readonly [bit: number, name: string])[] = [
  [LIMIT, 'X-RateLimit-Limit'],
  [REMAINING, 'X-RateLimit-Remaining'],
  [RESET, 'X-RateLimit-Reset'],
  [STANDARD, 'RateLimit-Policy'],
  [STANDARD, 'RateLimit'],
  [RETRY, 'Retry-After'],
  [RETRY_MS, 'retry-after-ms'],
];

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
  return mergedHeaders([{ told: decision, headers: options }]);
}

/** What {@link setHeaders} would set. */
export function mergedHeaders(announcements: readonly Announcement[]): Record<string, string> {
  const headers: Record<string, string> = {};
  const sink: HeaderSink = {
    setHeader(name, value) {
      headers[name] = value;
    },
  };
  setHeaders(sink, announcements);
  return headers;
}

/**
 * Sets the headers of one response on which several limiters have something to say, in the order in which they decided: the
 * `X-RateLimit-*` trio of the tightest, the policies of all, and the longest wait. So no limiter hides a tighter one.
 *
 * A decision that refuses makes `Retry-After` whatever the status of the response is: the fifth wrong password is answered
 * 401 by its handler, and its settled reading says that the block has begun.
 *
 * @returns what was set, for {@link namesLeftOut}.
 */
export function setHeaders(sink: HeaderSink, announcements: readonly Announcement[]): number {
  const waitMs = longestWait(announcements);
  const retryAfter = waitMs === undefined ? undefined : Math.max(1, seconds(waitMs));
  let set = setLegacy(sink, announcements, retryAfter) | setStandard(sink, announcements, retryAfter);
  if (waitMs === undefined || retryAfter === undefined) return set;
  sink.setHeader('Retry-After', String(retryAfter));
  set |= RETRY;
  if (!announcements.some(asksForMs)) return set;
  sink.setHeader('retry-after-ms', String(Math.max(1, whole(waitMs))));
  return set | RETRY_MS;
}

/** The names that were set before and are not now. */
export function namesLeftOut(before: number, now: number): readonly string[] {
  return NAMES.flatMap(([bit, name]) => ((before & ~now & bit) === 0 ? [] : [name]));
}

const asksForMs = ({ told, headers }: Announcement): boolean =>
  told?.allowed === false && headers !== false && headers?.retryAfterMs === true;

/** In seconds; `undefined` where nothing refuses, or where no waiting helps. */
type RetryAfter = number | undefined;

function setLegacy(sink: HeaderSink, announcements: readonly Announcement[], retryAfter: RetryAfter): number {
  let tightest: Announcement | undefined;
  for (const announcement of announcements) {
    const { told, headers } = announcement;
    if (told === undefined || told.limit === null) continue;
    if (headers === false || headers?.legacy === false) continue;
    if (tightest === undefined || goesBefore(announcement, tightest)) tightest = announcement;
  }
  const reading = headlineOf(tightest);
  if (reading === undefined) return 0;
  sink.setHeader('X-RateLimit-Limit', String(whole(reading.limit ?? 0)));
  sink.setHeader('X-RateLimit-Remaining', String(whole(reading.remaining ?? 0)));
  const reset = resetTime(reading, tightest?.told?.at ?? 0, retryAfter);
  if (reset === undefined) return LIMIT | REMAINING;
  sink.setHeader('X-RateLimit-Reset', String(reset));
  return LIMIT | REMAINING | RESET;
}

/** What one limiter would have the trio say. */
type Headline = Pick<Decision, 'allowed' | 'limit' | 'remaining' | 'retryAfterMs' | 'resetAfterMs'>;

function headlineOf(announcement: Announcement | undefined): Headline | undefined {
  const { told, shown } = announcement ?? {};
  return typeof shown === 'object' ? shown : told;
}

/** Refusing first, then what has counted, then the tightest. */
function goesBefore(a: Announcement, b: Announcement): boolean {
  const [left, right] = [headlineOf(a), headlineOf(b)];
  if (left === undefined || right === undefined) return false;
  const isSettled = left.allowed === right.allowed && (a.shown === 'waiting') !== (b.shown === 'waiting');
  return isSettled ? b.shown === 'waiting' : isTighter(left, right);
}

/** Unix seconds. The time of the decision has a fraction of its own, so it is rounded up as well: sleeping until then passes. */
function resetTime(
  { allowed, resetAfterMs }: Headline,
  at: number,
  retryAfter: RetryAfter,
): number | undefined {
  if (!allowed) return retryAfter === undefined ? undefined : seconds(at) + retryAfter;
  return resetAfterMs === null ? undefined : seconds(at + resetAfterMs);
}

function setStandard(
  sink: HeaderSink,
  announcements: readonly Announcement[],
  retryAfter: RetryAfter,
): number {
  let policies = '';
  let states = '';
  for (const reading of standardReadings(announcements)) {
    if (reading.shadow) continue;
    const { limit, windowMs, remaining, moreAfterMs } = reading;
    const text: PolicyText = policyText(reading.scope, limit, windowMs);
    const more = moreAfterMs === null ? 0 : Math.min(seconds(moreAfterMs), retryAfter ?? MAX_INTEGER);
    const state = `${text.name};r=${String(whole(remaining))}`;
    policies += policies === '' ? text.policy : `, ${text.policy}`;
    states += (states === '' ? state : `, ${state}`) + (more === 0 ? '' : `;t=${String(more)}`);
  }
  if (policies === '') return 0;
  sink.setHeader('RateLimit-Policy', policies);
  sink.setHeader('RateLimit', states);
  return STANDARD;
}

const isStandard = ({ told, headers }: Announcement): boolean =>
  told !== undefined && headers !== false && headers?.standard !== false;

/** One for each name: the draft forbids two entries of one policy, and two limiters may share a scope (one may not). */
function standardReadings(announcements: readonly Announcement[]): Iterable<RuleReading> {
  const [first] = announcements;
  if (first !== undefined && announcements.length === 1) {
    return isStandard(first) ? (first.told?.readings ?? []) : [];
  }
  const readings = new Map<string, RuleReading>();
  for (const announcement of announcements) {
    if (!isStandard(announcement)) continue;
    for (const reading of announcement.told?.readings ?? []) {
      if (reading.shadow) continue;
      const { name } = policyText(reading.scope, reading.limit, reading.windowMs);
      const earlier = readings.get(name);
      if (earlier === undefined || isTighter(reading, earlier)) readings.set(name, reading);
    }
  }
  return readings.values();
}

/** What decisions and readings have in common. */
interface Tightness {
  readonly allowed: boolean;
  readonly remaining: number | null;
  readonly retryAfterMs: number | null;
}

/**
 * Refusing before allowing, then the fewest remaining, then the longest wait. Ties stay with the first.
 *
 * @param none what remains where no rule says it
 */
export function isTighter(a: Tightness, b: Tightness, none = 0): boolean {
  if (a.allowed !== b.allowed) return !a.allowed;
  const left = a.remaining ?? none;
  const right = b.remaining ?? none;
  return left === right ? (a.retryAfterMs ?? Infinity) > (b.retryAfterMs ?? Infinity) : left < right;
}

/** The wait that satisfies every refusal; `undefined` where nothing refuses, or one of them for ever. */
function longestWait(announcements: readonly Announcement[]): number | undefined {
  let longest: number | undefined;
  for (const { told, headers } of announcements) {
    if (told === undefined || told.allowed || headers === false) continue;
    const ms = waitOf(told);
    if (ms === null) return undefined;
    longest = Math.max(longest ?? 0, ms);
  }
  return longest;
}

/**
 * Of one refused decision. Every refusing rule counts and not only the binding one: that may be a rule with long holds,
 * for which a second is advised, beside a rule that is used up for half a minute and would refuse after that second.
 */
function waitOf(told: Told): number | null {
  if (told.reason === 'unavailable') return told.retryAfterMs ?? 0;
  const refusing = told.readings.filter(reading => !reading.shadow && !reading.allowed);
  let longest = 0;
  for (const { reason, retryAfterMs } of refusing.length === 0 ? [told] : refusing) {
    if (retryAfterMs === null) return null;
    longest = Math.max(longest, reason === 'held' ? Math.min(HELD_ADVICE_MS, retryAfterMs) : retryAfterMs);
  }
  return longest;
}
