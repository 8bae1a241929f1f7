import { nodeCrypto } from '../../core/builtin.js';

const DIGITS = new Uint8Array(128);
for (let digit = 0; digit < 16; digit += 1) DIGITS[digit.toString(16).charCodeAt(0)] = digit;
/** Rows keep the last 32 of 64 digits. That any two of 10^9 subjects share 128 bits has a chance of 10^-21. */
const FROM = 32;

/**
 * A subject in the form that its rows keep: three words of its hash, and one that says where they lie.
 *
 * Whoever can compute SHA-256 finds subjects that share any few bits, so the place is none of the hash's own words: it is
 * the first one XOR a secret function of the others (simple tabulation, Pătraşcu and Thorup 2012: any three subjects lie
 * independently, and linear probing takes constant time). That can be undone, so nothing of the hash is lost.
 */
export class Digest {
  place = 0;
  second = 0;
  third = 0;
  fourth = 0;
  #hash = '';
  #unsalted = 0;
  /** A word for each value of each of 24 digits. */
  readonly #secret = new Int32Array(16 * 24);

  constructor() {
    nodeCrypto().randomFillSync(this.#secret);
  }

  /** @param salt of the scope: the rows of one subject in many scopes lie apart. */
  set(hash: string, salt: number): void {
    if (hash !== this.#hash) this.#read(hash);
    this.place = this.#unsalted ^ salt;
  }

  #read(hash: string): void {
    this.#hash = hash;
    let word = 0;
    let mask = 0;
    for (let i = 0; i < 24; i += 1) {
      const digit = DIGITS[hash.charCodeAt(FROM + 8 + i)] ?? 0;
      word = (word << 4) | digit;
      mask ^= this.#secret[16 * i + digit] ?? 0;
      if (i === 7) this.second = word;
      else if (i === 15) this.third = word;
    }
    this.fourth = word;
    for (let i = 0; i < 8; i += 1) word = (word << 4) | (DIGITS[hash.charCodeAt(FROM + i)] ?? 0);
    this.#unsalted = word ^ mask;
  }
}
