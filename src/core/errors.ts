/** The stable codes of every error that the library throws by itself. A code is never renamed within a major version. */
export type ErrorCode =
  | 'ERR_LIMITKEEPER_OPTION_TYPE'
  | 'ERR_LIMITKEEPER_OPTION_RANGE'
  | 'ERR_LIMITKEEPER_UNKNOWN_OPTION'
  | 'ERR_LIMITKEEPER_EXACTNESS'
  | 'ERR_LIMITKEEPER_DUPLICATE_SCOPE'
  | 'ERR_LIMITKEEPER_OUTCOME_REQUIRED'
  | 'ERR_LIMITKEEPER_KEY_REQUIRED'
  | 'ERR_LIMITKEEPER_STORE_CONTRACT'
  | 'ERR_LIMITKEEPER_SUBJECT'
  | 'ERR_LIMITKEEPER_COST'
  | 'ERR_LIMITKEEPER_PLAN'
  | 'ERR_LIMITKEEPER_RECEIPT'
  | 'ERR_LIMITKEEPER_CALLBACK'
  | 'ERR_LIMITKEEPER_UNKNOWN_SCOPE'
  | 'ERR_LIMITKEEPER_WEAK_KEY'
  | 'ERR_LIMITKEEPER_STORE_TIMEOUT'
  | 'ERR_LIMITKEEPER_STORE_SUSPENDED'
  | 'ERR_LIMITKEEPER_STORE_RIGHTS'
  | 'ERR_LIMITKEEPER_STORE';

/** What every error of the library carries beside its message. */
export interface LimitkeeperError extends Error {
  readonly code: ErrorCode;
  /** The option that was wrong, where it was one; in a list of rules with its index, as `rules[1].limit`. */
  readonly option?: string;
}

/**
 * Is this an error of the library? Looks at the `code` and not at the class: two versions of the
 * library may be installed in one application, and `instanceof` fails across them.
 */
export function isLimitkeeperError(error: unknown): error is LimitkeeperError {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    error.code.startsWith('ERR_LIMITKEEPER_')
  );
}

interface Details {
  readonly option?: string;
  readonly cause?: unknown;
}

function coded<E extends Error>(error: E, code: ErrorCode, details: Details): E & LimitkeeperError {
  const { option, cause } = details;
  return Object.assign(error, {
    code,
    ...(option === undefined ? {} : { option }),
    ...(cause === undefined ? {} : { cause }),
  });
}

export function typeError(
  code: ErrorCode,
  message: string,
  details: Details = {},
): TypeError & LimitkeeperError {
  return coded(new TypeError(`limitkeeper: ${message}`), code, details);
}

export function rangeError(
  code: ErrorCode,
  message: string,
  details: Details = {},
): RangeError & LimitkeeperError {
  return coded(new RangeError(`limitkeeper: ${message}`), code, details);
}

/** A store that failed: an operational error, not a misuse. It reaches listeners, never a request. */
export function storeError(code: ErrorCode, message: string, details: Details = {}): LimitkeeperError {
  return coded(new Error(`limitkeeper: ${message}`), code, details);
}

/** What came, for a message: short, quoted, and with its type where the text alone could mislead. */
export function received(value: unknown): string {
  if (typeof value === 'string') {
    return `the string ${JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)}`;
  }
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return `an array of ${String(value.length)}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  if (typeof value === 'symbol') return 'a symbol';
  return Object.is(value, -0) ? '-0' : `${String(value)}${typeof value === 'bigint' ? 'n' : ''}`;
}

/** The same for what may be a secret, such as the address of a server with its password: the value never shows. */
export function receivedSecret(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'bigint') return `a ${typeof value}`;
  if (typeof value !== 'string') return received(value);
  return value === '' ? 'an empty string' : 'a string';
}
