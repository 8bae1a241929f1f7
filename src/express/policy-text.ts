/** RFC 9651, section 3.3.1: an Integer has at most 15 digits. */
export const MAX_INTEGER = 999_999_999_999_999;

/** Scopes kept; an application has a handful. */
const MOST_KEPT = 1000;

/** What the IETF fields say of one policy whenever they say anything. */
export interface PolicyText {
  /** The scope as a structured-field String. */
  readonly name: string;
  readonly limit: number;
  readonly windowMs: number;
  /** `"api.ip";q=120;w=60` */
  readonly policy: string;
}

const kept = new Map<string, PolicyText>();

/** Made once for each rule, as long as its numbers stay the same. */
export function policyText(scope: string, limit: number, windowMs: number): PolicyText {
  const known = kept.get(scope);
  if (known?.limit === limit && known.windowMs === windowMs) return known;
  const name = known?.name ?? quoted(scope);
  const policy = `${name};q=${String(whole(limit))};w=${String(seconds(windowMs))}`;
  const text = { name, limit, windowMs, policy };
  if (known === undefined && kept.size >= MOST_KEPT) kept.clear();
  kept.set(scope, text);
  return text;
}

/** A structured-field String: printable ASCII. Everything else, and `%` itself, is percent-encoded, so names stay apart. */
function quoted(scope: string): string {
  const ascii = scope.toWellFormed().replace(/[^\x20-\x7e]|%/gu, encodeURIComponent);
  return `"${ascii.replace(/["\\]/g, '\\$&')}"`;
}

/** A number that such a field can carry, rounded up. */
export function whole(value: number): number {
  return Math.min(Math.max(0, Math.ceil(value)), MAX_INTEGER);
}

/** Rounded up. */
export function seconds(ms: number): number {
  return whole(ms / 1000);
}
