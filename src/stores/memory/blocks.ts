import { isStanding } from '../../core/block.js';
import type { Block } from '../../core/block.js';
import type { HashedSubject } from '../../core/operation.js';
import { Sorted } from './sorted.js';

/** A block, standing or remembered for its strikes. */
export interface Blocked {
  readonly hash: string;
  readonly scope: string;
  readonly block: Block;
  /** Higher than that of all blocks that began before. */
  readonly number: number;
  /** The hashes of the subject's parts. */
  readonly parts: readonly string[];
}

interface Listed<Key> {
  readonly key: Key;
  readonly number: number;
  readonly blocked: Blocked;
}

/** What all are listed under, as if it were a part of every subject. */
const ALL = '';

/** The orders of all blocks: in which they began, for operators, and in which they end. */
export class BlockLists {
  size = 0;
  #last = 0;
  readonly #byPart = new Sorted<Listed<string>>();
  readonly #byEnd = new Sorted<Listed<number>>();

  /** The one that ends first; one for ever last. */
  get first(): Blocked | undefined {
    return this.#byEnd.first?.blocked;
  }

  /** @param before what it replaces. */
  add(
    subject: HashedSubject,
    scope: string,
    block: Block,
    before: Blocked | undefined,
    now: number,
  ): Blocked {
    const stood = before !== undefined && isStanding(before.block, now);
    const number = stood ? before.number : (this.#last += 1);
    const blocked = { hash: subject.hash, scope, block, number, parts: partsOf(subject, before) };
    this.size += 1;
    this.#byEnd.add({ key: block.until ?? Infinity, number, blocked });
    for (const key of [ALL, ...blocked.parts]) this.#byPart.add({ key, number, blocked });
    return blocked;
  }

  remove({ block, number, parts }: Blocked): void {
    this.size -= 1;
    this.#byEnd.remove({ key: block.until ?? Infinity, number });
    for (const key of [ALL, ...parts]) this.#byPart.remove({ key, number });
  }

  /** Those numbered higher, in order; only those of subjects with this part, where one is named. */
  *after(number: number, part = ALL): Generator<Blocked> {
    for (const { key, blocked } of this.#byPart.after({ key: part, number })) {
      if (key !== part) return;
      yield blocked;
    }
  }
}

/**
 * Under which hashes a block is found. An operator may have blocked by hash, and then the parts are not known: those of
 * the block that stood before hold, or the hash itself, which is that of the only part if there is just one.
 */
function partsOf({ hash, partHashes }: HashedSubject, before: Blocked | undefined): readonly string[] {
  return partHashes.length > 0 ? [...new Set(partHashes)] : (before?.parts ?? [hash]);
}
