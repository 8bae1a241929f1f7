import type { Cell } from '../../core/cell.js';

/**
 * One stored cell with its places in the rooms of the store. The links are the rooms' own: an entry sits in at most one
 * list of the wheel, one chain of its subject and one place of the table, so that each can take it out in O(1).
 */
export interface Entry {
  readonly scope: string;
  readonly subjectHash: string;
  cell: Cell;
  /** The time from which the cell says nothing any more; `Infinity` while a block for ever stands. */
  until: number;

  /** Table: index in the dense array, -1 once removed. */
  position: number;
  /** Table: the next entry of the same subject. */
  sibling: Entry | undefined;

  /** Wheel: the time at which it comes due, in the wheel's own time, and the list that it hangs in. */
  due: number;
  list: EntryList | undefined;
  before: Entry | undefined;
  after: Entry | undefined;

  /** Index of blocks: its number there, 0 while it is not listed, and the part hashes under which it is found. */
  blockNumber: number;
  parts: readonly string[];
}

export function newEntry(scope: string, subjectHash: string, cell: Cell): Entry {
  return {
    scope,
    subjectHash,
    cell,
    until: 0,
    position: -1,
    sibling: undefined,
    due: 0,
    list: undefined,
    before: undefined,
    after: undefined,
    blockNumber: 0,
    parts: [],
  };
}

/** A list linked through the entries themselves. */
export class EntryList {
  first: Entry | undefined;
  last: Entry | undefined;

  append(entry: Entry): void {
    entry.list = this;
    entry.before = this.last;
    entry.after = undefined;
    if (this.last === undefined) this.first = entry;
    else this.last.after = entry;
    this.last = entry;
  }

  remove(entry: Entry): void {
    if (entry.before === undefined) this.first = entry.after;
    else entry.before.after = entry.after;
    if (entry.after === undefined) this.last = entry.before;
    else entry.after.before = entry.before;
    entry.list = undefined;
    entry.before = undefined;
    entry.after = undefined;
  }
}
