import { CELL_VERSION } from '../../core/cell.js';
import type { Cell } from '../../core/cell.js';
import type { Check } from '../../core/check.js';
import { isStanding } from '../../core/block.js';
import { decide } from '../../core/decide.js';
import { BlockLists } from './blocks.js';
import type { Blocked } from './blocks.js';
import { blockedAt, counterAt, loadRow, rowShare, rowUntil, saveRow } from './row.js';
import type { Segment } from './segment.js';
import { Table } from './table.js';

/** Counters that are compared where one must go. With 16, it is nearly always among the emptiest fifth. */
const SAMPLE = 16;

/**
 * All that is stored, loaded into the registers of checks and saved from there. Counters and blocks are rows of one table, each kind with room
 * of its own, which the other cannot take.
 */
export class Cells {
  readonly blocks = new BlockLists();
  readonly #most: number;
  readonly #table: Table;
  /** Where the counters of the call at hand were found. */
  readonly #rows: number[] = [];
  readonly #segments: Segment[] = [];

  /** @param most counters, and as many blocks. */
  constructor(most: number) {
    this.#most = most;
    this.#table = new Table(most);
  }

  get size(): number {
    return this.#table.size;
  }

  get scopes(): string[] {
    return [...this.#table.series.scopes.keys()];
  }

  /** Decides by what is stored, and stores what has changed. */
  decide(checks: readonly Check[], now: number): void {
    const table = this.#table;
    let loaded = 0;
    for (const check of checks) {
      const row = this.#find(check);
      this.#rows[loaded] = row;
      this.#segments[loaded++] = table.segment;
      if (row >= 0) loadRow(table.segment, row, check);
      if (this.blocks.size > 0) check.block = this.#blocked(check)?.block;
    }
    const { moves } = table;
    decide(checks, now);
    let saved = -1;
    for (const check of checks) {
      saved += 1;
      if (!check.changed) continue;
      let row = this.#rows[saved] ?? -1;
      if (table.moves === moves) table.segment = this.#segments[saved] ?? table.segment;
      else row = this.#find(check);
      this.#save(check, row, now);
    }
  }

  #find({ rule, subject }: Check): number {
    return this.#table.find(subject.hash, rule.scope, rule.algorithm, rule.windowMs);
  }

  #save(check: Check, row: number, now: number): void {
    if (check.forgotten) this.forget(check.subject.hash, check.rule.scope);
    else this.#saveCounter(check, row, now);
    const blocked = this.#blocked(check);
    if (check.block !== blocked?.block) this.#saveBlock(check, blocked, now);
  }

  #saveCounter(check: Check, found: number, now: number): void {
    const { rule, subject, keepMs } = check;
    let row = found;
    if (keepMs === 0) {
      if (row >= 0) this.#remove(row);
      return;
    }
    if (row < 0) {
      this.#makeRoom(now);
      row = this.#table.insert(subject.hash, rule.scope, rule.algorithm, rule.windowMs);
    }
    saveRow(this.#table.segment, row, check);
  }

  #saveBlock({ rule: { scope }, subject, block }: Check, before: Blocked | undefined, now: number): void {
    if (before !== undefined) this.#removeBlock(before);
    if (block === undefined) return;
    const blocked = this.blocks.add(subject, scope, block, before, now);
    const row = this.#table.insert(subject.hash, scope, 'block');
    this.#table.segment.setBeside(row, blocked);
    const { first } = this.blocks;
    if (this.blocks.size > this.#most && first !== undefined) this.#removeBlock(first);
  }

  #blocked({ rule, subject }: Check): Blocked | undefined {
    return this.#blockedIn(subject.hash, rule.scope);
  }

  #blockedIn(hash: string, scope: string): Blocked | undefined {
    const row = this.blocks.size === 0 ? -1 : this.#table.find(hash, scope, 'block');
    return row < 0 ? undefined : blockedAt(this.#table.segment, row);
  }

  /** The whole cell. */
  inspect(hash: string, scope: string): Cell | undefined {
    const rows = this.#table.findAll(hash, scope).filter(row => this.#table.seriesOf(row).kind !== 'block');
    const counters = rows.map(row => counterAt(this.#table.segment, row, this.#table.seriesOf(row)));
    const block = this.#blockedIn(hash, scope)?.block;
    if (block !== undefined) return { v: CELL_VERSION, block, counters };
    return counters.length === 0 ? undefined : { v: CELL_VERSION, counters };
  }

  /** Removes the counters of a cell, whatever their windows, and where told so its block. */
  forget(hash: string, scope: string, blockToo = false): void {
    // From the last one on: only what stands behind a row moves when it goes.
    for (const row of this.#table.findAll(hash, scope).reverse()) {
      if (blockToo || this.#table.seriesOf(row).kind !== 'block') this.#remove(row);
    }
  }

  clear(scopes: ReadonlySet<string>): void {
    for (const row of this.#table.all()) {
      if (scopes.has(this.#table.seriesOf(row).scope.name)) this.#remove(row);
    }
  }

  /** Looks at so many rows, and removes those that are over. */
  sweep(looks: number, now: number): void {
    for (let left = looks; left > 0; left -= 1) {
      const row = this.#table.turn();
      if (row < 0) return;
      if (rowUntil(this.#table.segment, row, this.#table.seriesOf(row)) <= now) this.#remove(row);
    }
  }

  #removeBlock({ hash, scope }: Blocked): void {
    this.#remove(this.#table.find(hash, scope, 'block'));
  }

  #remove(row: number): void {
    if (this.#table.seriesOf(row).kind === 'block') this.blocks.remove(blockedAt(this.#table.segment, row));
    this.#table.remove(row);
  }

  get #counters(): number {
    return this.#table.size - this.blocks.size;
  }

  /** Does a block refuse whom the row counts, whatever it says? */
  #isBlocked(row: number, now: number): boolean {
    if (this.blocks.size === 0) return false;
    const block = this.#table.blockOf(row);
    return block >= 0 && isStanding(blockedAt(this.#table.segment, block).block, now);
  }

  /**
   * For one counter. What is over goes; else of a sample one whose subject a block refuses anyway, or there would be no room
   * for others in a store that is full of them; else the emptiest, as a share of its capacity: so a flood of new addresses,
   * each with a unit or two, drives out itself.
   */
  #makeRoom(now: number): void {
    if (this.#counters >= this.#most) this.sweep(SAMPLE, now);
    if (this.#counters < this.#most) return;
    const table = this.#table;
    let victim = { segment: table.segment, row: -1, share: Infinity, until: Infinity };
    let left = Math.min(SAMPLE, this.#counters);
    for (const row of this.#counters > SAMPLE ? table.draws() : table.all()) {
      const { segment } = table;
      const series = table.seriesOf(row);
      if (series.kind === 'block') continue;
      const until = rowUntil(segment, row, series);
      const share = until <= now ? -2 : this.#isBlocked(row, now) ? -1 : rowShare(segment, row, series, now);
      if (share < victim.share || (share === victim.share && until < victim.until)) {
        victim = { segment, row, share, until };
      }
      left -= 1;
      if (left === 0) break;
    }
    table.segment = victim.segment;
    this.#remove(victim.row);
  }
}
