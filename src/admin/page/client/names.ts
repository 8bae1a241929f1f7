/** Subjects whose whole hash this tab has seen, at most. */
const MOST_SEEN = 5000;

/**
 * What this tab knows of hashes: whom the operator has typed, so that a question can say whom it is about, and the hashes
 * that were shown, so that the digits of one find it. It lives in the memory of the tab, and ends with the visit.
 */
export class Names {
  readonly #typed = new Map<string, string>();
  readonly #seen = new Set<string>();

  /** Somebody was found by what the operator typed. */
  learn(hash: string, typed: string): void {
    this.#typed.set(hash, typed);
  }

  /** What was typed to find them. */
  typed(hash: string): string | undefined {
    return this.#typed.get(hash);
  }

  saw(hash: string): void {
    this.#seen.delete(hash);
    this.#seen.add(hash);
    if (this.#seen.size <= MOST_SEEN) return;
    const [oldest = ''] = this.#seen;
    this.#seen.delete(oldest);
  }

  /** The one hash that was shown here and begins so. */
  whole(digits: string): string | undefined {
    const alike = [...this.#seen].filter(hash => hash.startsWith(digits));
    return alike.length === 1 ? alike[0] : undefined;
  }

  clear(): void {
    this.#typed.clear();
    this.#seen.clear();
  }
}

/** The first digits of a hash tell people apart well enough; the whole one is in the title. */
export function shortHash(hash: string): string {
  return `${hash.slice(0, 12)}…`;
}
