import { canonicalAddress, DEFAULT_IPV6_PREFIX } from './address.js';
import { nodeCrypto } from './builtin.js';
import { received, typeError } from './errors.js';
import type { HashedSubject } from './operation.js';

/** One part of a key. Numbers count as their decimal text. */
export type SubjectPart = string | number | bigint;

/** Who is counted: one part, or several that together name one subject, e.g. `[email, address]`. */
export type SubjectKey = SubjectPart | readonly SubjectPart[];

/** How keys become hashes; every process that shares a store must use the same. */
export interface Hashing {
  /** Makes the hash an HMAC-SHA-256, so that nobody can guess addresses back. */
  readonly secret?: string;
  /** Bits of an IPv6 address that count as one client, 32 to 128. Default 56. */
  readonly ipv6Prefix?: number;
}

/**
 * The key of a request that has no address (its socket is gone, or it came over a unix socket). As text it begins with
 * `[`, and such a text is never the plain form of a one-part subject: no client can choose it by accident.
 */
export const NO_ADDRESS = '[no address]';

/**
 * The SHA-256 hash under which a subject is stored, 64 lower-case hex digits.
 *
 * One well-formed part that does not begin with `[` is hashed as it is: `printf %s alice | sha256sum` finds it. Everything
 * else is hashed as `JSON.stringify(parts)`, so that no two different keys can meet. A part that is an IP address is
 * brought to its canonical text first.
 *
 * @param parts one part or several, e.g. `'alice'`, `42`, `['a@b.c', '203.0.113.7']`.
 * @param secret makes it an HMAC-SHA-256 under this key (option `hashSecret`).
 * @param ipv6Prefix 32 to 128, default 56 (option `ipv6Prefix`).
 * @throws TypeError `ERR_LIMITKEEPER_SUBJECT` for an empty part, or anything but strings, finite numbers and bigints.
 * @example
 * subjectHash('alice'); // 2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90
 * subjectHash(['a@b.c', '203.0.113.7']); // sha256 of ["a@b.c","203.0.113.7"]
 */
export function subjectHash(
  parts: SubjectKey,
  secret?: string,
  ipv6Prefix: number = DEFAULT_IPV6_PREFIX,
): string {
  return digest(textOf(partsOf(parts, ipv6Prefix)), secret);
}

/**
 * The subject of a key as stores see it.
 *
 * @throws TypeError `ERR_LIMITKEEPER_SUBJECT`, see {@link subjectHash}. The message never contains the key.
 */
export function hashSubject(key: unknown, hashing: Hashing): HashedSubject {
  const parts = partsOf(key, hashing.ipv6Prefix ?? DEFAULT_IPV6_PREFIX);
  return new Subject(digest(textOf(parts), hashing.secret), parts, hashing.secret);
}

/** The subject of an address in the one spelling that `canonicalAddress` makes, or of {@link NO_ADDRESS}. */
export function subjectOfAddress(address: string, hashing: Hashing): HashedSubject {
  const parts = [address];
  return new Subject(digest(textOf(parts), hashing.secret), parts, hashing.secret);
}

/** A subject of which only the hash is known, as operators have it. It has no parts to index. */
export function subjectOfHash(hash: string): HashedSubject {
  return new Subject(hash, [], undefined);
}

/** Was this made by the functions above? By a mark and not by the class: ESM and CommonJS copies may meet. */
export function isHashedSubject(value: unknown): value is HashedSubject {
  return typeof value === 'object' && value !== null && MARK in value;
}

const MARK = Symbol.for('limitkeeper.subject');

class Subject implements HashedSubject {
  readonly [MARK] = true;
  readonly hash: string;
  readonly #parts: readonly string[];
  readonly #secret: string | undefined;

  constructor(hash: string, parts: readonly string[], secret: string | undefined) {
    this.hash = hash;
    this.#parts = parts;
    this.#secret = secret;
  }

  get partHashes(): readonly string[] {
    return this.#parts.map(part => digest(textOf([part]), this.#secret));
  }
}

function partsOf(key: unknown, ipv6Prefix: number): readonly string[] {
  if (!Array.isArray(key)) return [partOf(key, ipv6Prefix)];
  if (key.length === 0) throw badSubject('an empty array');
  return key.map((part: unknown) => partOf(part, ipv6Prefix));
}

function partOf(part: unknown, ipv6Prefix: number): string {
  switch (typeof part) {
    case 'string':
      if (part === '') throw badSubject('an empty string');
      return canonicalAddress(part, ipv6Prefix) ?? part;
    case 'number':
      if (!Number.isFinite(part)) throw badSubject(String(part));
      // Beyond 1e21 String() writes an exponent; as bigint the digits stay digits, and 0 has no sign.
      return Number.isInteger(part) ? BigInt(part).toString() : String(part);
    case 'bigint':
      return part.toString();
    default:
      throw badSubject(received(part));
  }
}

function badSubject(came: string): TypeError {
  return typeError(
    'ERR_LIMITKEEPER_SUBJECT',
    `a key must be a non-empty string, a finite number, a bigint, or an array of these, got ${came}. ` +
      'Return a value that names one client from keyFn (a user id, an address), and handle requests without one explicitly.',
    { option: 'keyFn' },
  );
}

/** Injective: the JSON form begins with `[`, the plain form never does. */
function textOf(parts: readonly string[]): string {
  const [only] = parts;
  const plain = parts.length === 1 && only !== undefined && !only.startsWith('[') && only.isWellFormed();
  // JSON writes a lone surrogate as an escape; UTF-8 alone would turn all of them into the same U+FFFD.
  return plain ? only : JSON.stringify(parts);
}

function digest(text: string, secret: string | undefined): string {
  const crypto = nodeCrypto();
  if (secret !== undefined) return crypto.createHmac('sha256', secret).update(text, 'utf8').digest('hex');
  // `crypto.hash` came with Node 20.12; it is about five times faster here than a Hash object.
  if (typeof crypto.hash === 'function') return crypto.hash('sha256', text);
  return crypto.createHash('sha256').update(text, 'utf8').digest('hex');
}
