import { algorithms } from '../../algorithms/index.js';
import { Check } from '../../core/check.js';
import { decide } from '../../core/decide.js';
import { storeError } from '../../core/errors.js';
import type { Reading, Reason } from '../../core/decision.js';
import type { Rule } from '../../core/rule.js';
import { listReply, noReply } from './explain.js';
import { textOf } from './port.js';
import type { Work } from './work.js';

/** A block of one item, as its reply tells it. */
export interface BlockNews {
  readonly item: number;
  readonly news: 'started' | 'stands' | 'ended';
  /** How long it lasts from the decision's time; `null`: for ever; 0: it has ended. */
  readonly lastsMs: number | null;
}

/** What the server has decided, and what only this store wants to know of it. */
export interface Outcome {
  readonly at: number;
  /** One per item, in order. */
  readonly readings: readonly Reading[];
  /** The items (by index) whose automatic block started. */
  readonly blockStarted: readonly number[];
  readonly blocks: readonly BlockNews[];
}

const REASONS: readonly Reason[] = ['ok', 'blocked', 'cost', 'limit', 'held'];
const FAILED = -1;
const LATE = -2;
/** The reply of `lua/shared/quick.lua`: a state, of which the reading is yet to be made. */
const COUNTED = 64;
const REFUSED = 65;
const STARTED = 8;
const ENDED = 16;
const STANDS = 32;
const NONE: readonly never[] = [];

/** Walks through the flat reply of `lua/decide.lua`. */
export class ReplyReader {
  readonly at: number;
  readonly #numbers: readonly unknown[];
  #next = 2;

  constructor(reply: unknown) {
    this.#numbers = listReply(reply);
    this.at = Number(this.#numbers[0]) * 1000 + Math.floor(Number(this.#numbers[1]) / 1000);
    if (!Number.isSafeInteger(this.at)) {
      throw noReply();
    }
  }

  /** Nothing was decided: the call reached the server too late. */
  get isLate(): boolean {
    return Number(this.#numbers[2]) === LATE;
  }

  /** The next decision, or the error that it failed with. */
  read(items: Work): Outcome | Error {
    const code = Number(this.#numbers[this.#next]);
    if (code === COUNTED || code === REFUSED) return this.#quick(items, code === COUNTED);
    if (code === FAILED) {
      const message = textOf(this.#numbers[this.#next + 1]);
      this.#next += 2;
      return storeError('ERR_LIMITKEEPER_STORE', `the script failed: ${message}`, {
        cause: new Error(message),
      });
    }
    const blocks: BlockNews[] = [];
    const readings = new Array<Reading>(items.length);
    let i = 0;
    for (const { rule } of items) readings[i] = this.#reading(rule, i++, blocks);
    if (blocks.length === 0) return { at: this.at, readings, blockStarted: NONE, blocks: NONE };
    const blockStarted = blocks.flatMap(({ item, news }) => (news === 'started' ? [item] : []));
    return { at: this.at, readings, blockStarted, blocks };
  }

  /** One rule of which nothing but the counter is stored: what `decide` says of it now. */
  #quick([item]: Work, isCounted: boolean): Outcome | Error {
    if (item?.operation.type !== 'consume') return noReply();
    this.#next += 1;
    const { rule, subject, operation } = item;
    const look = new Check(rule, subject, { type: 'peek', cost: isCounted ? 0 : operation.cost });
    algorithms[rule.algorithm].load(look, [this.#number(), this.#number(), this.#number()]);
    decide([look], this.at);
    return { at: this.at, readings: [look], blockStarted: NONE, blocks: NONE };
  }

  #reading({ scope, capacity }: Rule, item: number, blocks: BlockNews[]): Reading {
    const code = this.#number();
    const reason = REASONS[code & 7] ?? 'ok';
    const allowed = reason === 'ok';
    const remaining = this.#number();
    const retryAfterMs = allowed ? 0 : this.#wait();
    const moreAfterMs = this.#wait();
    const resetAfterMs = this.#wait();
    if (code >= STANDS) {
      blocks.push({ item, news: (code & STARTED) === 0 ? 'stands' : 'started', lastsMs: this.#wait() });
    } else if ((code & ENDED) !== 0) blocks.push({ item, news: 'ended', lastsMs: 0 });
    return { scope, allowed, reason, limit: capacity, remaining, retryAfterMs, moreAfterMs, resetAfterMs };
  }

  /** Some clients can be told to hand numbers out as text. */
  #number(): number {
    const value = this.#numbers[this.#next++];
    return typeof value === 'number' ? value : Number(value);
  }

  #wait(): number | null {
    const wait = this.#number();
    return wait < 0 ? null : wait;
  }
}
