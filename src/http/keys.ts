import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { rangeError, received, typeError } from '../core/errors.js';

const MIN_LENGTH = 16;
/** What travels in a header as it is: printable ASCII, without blanks at the ends. */
const SENDABLE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/**
 * The keys that open something, kept as SHA-256 digests. Several may be valid at once, so that one can be replaced without
 * a moment in which none works.
 */
export class Keyring {
  readonly #digests: readonly Buffer[];

  /**
   * @param keys one or several; `undefined` and empty ones are no keys, and a ring without keys opens for nobody.
   * @param option its name, for errors. They never contain a key.
   * @throws RangeError `ERR_LIMITKEEPER_WEAK_KEY` for a key under 16 characters, or one that no header can carry.
   */
  constructor(keys: string | readonly string[] | undefined, option: string) {
    this.#digests = listOf(keys, option)
      .filter(key => key !== '')
      .map(key => digest(checkKey(key, option)));
  }

  get isEmpty(): boolean {
    return this.#digests.length === 0;
  }

  /**
   * Is one of the presented keys one of ours? Every pair is compared, in constant time and whatever the others gave, so that
   * the time taken says nothing about any key.
   */
  opensFor(presented: readonly string[]): boolean {
    let found = false;
    for (const key of presented) {
      const candidate = digest(key);
      for (const own of this.#digests) if (timingSafeEqual(candidate, own)) found = true;
    }
    return found;
  }

  /** Do two rings share a key? For a check at construction. */
  sharesKeyWith(other: Keyring): boolean {
    return this.#digests.some(own => other.#digests.some(theirs => own.equals(theirs)));
  }
}

/** What a request presents: the header named (in lower case), and `Authorization: Bearer`. */
export function presentedKeys(headers: IncomingHttpHeaders, name: string): readonly string[] {
  const own = headers[name];
  // The key begins with no blank: whatever follows, there is one way to read it.
  const [, bearer] = /^bearer +([^ ].*)$/i.exec(headers.authorization ?? '') ?? [];
  return [own, bearer].filter(key => typeof key === 'string' && key !== '') as string[];
}

function listOf(keys: unknown, option: string): readonly string[] {
  if (keys === undefined) return [];
  const list: readonly unknown[] = Array.isArray(keys) ? keys : [keys];
  for (const key of list) {
    if (typeof key === 'string') continue;
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `${option} must be a string or an array of strings, got ${Array.isArray(keys) ? `an array with ${received(key)}` : received(key)}.`,
      { option },
    );
  }
  return list as readonly string[];
}

function checkKey(key: string, option: string): string {
  if (key.length < MIN_LENGTH) {
    throw rangeError(
      'ERR_LIMITKEEPER_WEAK_KEY',
      `${option} must have at least ${String(MIN_LENGTH)} characters, got one of ${String(key.length)}. ` +
        'Take a random one, e.g. from: openssl rand -hex 24',
      { option },
    );
  }
  if (!SENDABLE.test(key)) {
    throw rangeError(
      'ERR_LIMITKEEPER_WEAK_KEY',
      `${option} must be printable ASCII without blanks at its ends, because it travels in a header; this one could never be sent. ` +
        'A key read from a file often ends in a line break: trim it.',
      { option },
    );
  }
  return key;
}

const digest = (text: string): Buffer => createHash('sha256').update(text, 'utf8').digest();
