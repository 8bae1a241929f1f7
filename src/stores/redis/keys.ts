/** A subject's hash as it stands in keys and lists. */
const HASH = '[0-9a-f]{64}';
const WHOLE_HASH = new RegExp(`^${HASH}$`);
const MEMBER = new RegExp(`^${HASH}:`);
export const HASH_LENGTH = 64;

/**
 * The names of the store's keys. What differs from them in one letter is somebody else's, though it begins with the prefix: a
 * key of the application, or of a store whose prefix begins with this one.
 */
export class Keys {
  readonly #head: string;
  readonly #subject: RegExp;
  readonly #any: RegExp;

  /** @param prefix with the client's own key prefix before it, which may hold anything */
  constructor(prefix: string) {
    const literal = prefix.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    this.#head = `${prefix}:`;
    this.#subject = new RegExp(`^${literal}:\\{${HASH}\\}$`);
    this.#any = new RegExp(
      `^${literal}:(?:\\{${HASH}\\}|(?:blocks:\\{[0-9a-f]\\}|part:\\{${HASH}\\}):(?:ends|names))$`,
    );
  }

  /** All scopes of one subject. A field: the hot path hands it on. */
  readonly subject = (hash: string): string => `${this.#head}{${hash}}`;

  /** A list of blocks; it lies in two keys, `…:ends` and `…:names`. */
  list(kind: 'blocks' | 'part', name: string): string {
    return `${this.#head}${kind}:{${name}}`;
  }

  /** For SCAN, which can only narrow down: what it finds must be asked for. */
  get pattern(): string {
    return `${this.#head.replace(/[\\*?[\]^]/g, '\\$&')}*`;
  }

  /** Is it one of this store's keys at all? */
  isOurs(key: string): boolean {
    return this.#any.test(key);
  }

  /** Is it the key of a subject? */
  isSubject(key: string): boolean {
    return this.#subject.test(key);
  }
}

/** No key of ours is named after anything else. */
export const isHash = (text: string): boolean => WHOLE_HASH.test(text);

/** `hash:scope`, as the lists of blocks have them. */
export const isMember = (text: string): boolean => MEMBER.test(text);
