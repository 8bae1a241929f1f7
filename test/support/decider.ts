import type { Cell } from '../../src/core/cell.js';
import { Check } from '../../src/core/check.js';
import { decideCells } from '../../src/core/decide-cells.js';
import type { Operation } from '../../src/core/operation.js';
import type { Reading } from '../../src/core/decision.js';
import type { Rule } from '../../src/core/rule.js';
import { subject } from './subjects.js';

const alice = subject('alice');

/** `decide` for one rule and one subject, the cell kept between the calls. */
export class Decider {
  cell: Cell | undefined;
  readonly #rule: Rule;

  constructor(rule: Rule, cell?: Cell) {
    this.#rule = rule;
    this.cell = cell;
  }

  readonly ask = (operation: Operation, now: number): Reading => {
    const check = new Check(this.#rule, alice, operation);
    [this.cell] = decideCells([check], [this.cell], now);
    return check.reading;
  };

  /** The answer that would come, without its effect. */
  foresee(operation: Operation, now: number): Reading {
    return new Decider(this.#rule, this.cell).ask(operation, now);
  }

  /** May this cost pass at `now`? */
  passes(cost: number, now: number): boolean {
    return this.foresee({ type: 'peek', cost }, now).allowed;
  }
}
