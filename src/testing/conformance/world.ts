import { applyBatch } from '../batch.js';
import { strict as assert } from 'node:assert';
import type { Reading } from '../../core/decision.js';
import type { HashedSubject, Operation } from '../../core/operation.js';
import { RuleTemplate } from '../../core/rule.js';
import type { Plan, Rule, RuleSettings } from '../../core/rule.js';
import type { Store } from '../../core/store.js';
import { hashSubject } from '../../core/subject.js';
import type { FakeClock } from '../fake-clock.js';
import type { Need } from './support.js';

/** One promise of a store. */
export interface Clause {
  readonly promise: string;
  readonly needs?: readonly Need[];
  check(world: World): Promise<void>;
}

/** When every clause begins: 2025-12-01T10:43:00.000Z, a whole minute. */
export const START = 1_764_585_780_000;

/** What a clause has to do with: a fresh store, its clock, and short ways to name rules, subjects and operations. */
export class World {
  readonly store: Store;
  readonly #clock: FakeClock | undefined;
  readonly #another: () => Promise<Store>;

  constructor(store: Store, clock: FakeClock | undefined, another: () => Promise<Store>) {
    this.store = store;
    this.#clock = clock;
    this.#another = another;
  }

  /** Only for clauses that need a clock. */
  get clock(): FakeClock {
    assert.ok(this.#clock, 'the clause needs a clock and does not say so');
    return this.#clock;
  }

  /** Another store that counts together with this one; it is closed with it. */
  another(): Promise<Store> {
    return this.#another();
  }

  async decide(rule: Rule, operation: Operation, subject = ALICE, store = this.store): Promise<Reading> {
    const { readings } = await applyBatch(store, [{ rule, subject, operation }]);
    const [reading] = readings;
    assert.equal(readings.length, 1, 'one reading per item');
    assert.ok(reading);
    assert.equal(reading.scope, rule.scope, 'the reading names the scope of its rule');
    return reading;
  }

  consume(rule: Rule, cost = 1, subject = ALICE): Promise<Reading> {
    return this.decide(rule, { type: 'consume', cost }, subject);
  }

  reserve(rule: Rule, cost = 1, subject = ALICE): Promise<Reading> {
    return this.decide(rule, { type: 'reserve', cost }, subject);
  }

  peek(rule: Rule, cost = 1, subject = ALICE): Promise<Reading> {
    return this.decide(rule, { type: 'peek', cost }, subject);
  }

  charge(rule: Rule, units = 1, subject = ALICE): Promise<Reading> {
    return this.decide(rule, { type: 'charge', units }, subject);
  }

  block(rule: Rule, ms: number | null, subject = ALICE): Promise<Reading> {
    return this.decide(rule, { type: 'block', ms }, subject);
  }

  /** The store's time, learnt from a look at somebody else. */
  async now(): Promise<number> {
    const { at } = await applyBatch(this.store, [
      { rule: HOURLY, subject: subject('nobody'), operation: { type: 'peek', cost: 0 } },
    ]);
    return at;
  }
}

export function subject(...parts: string[]): HashedSubject {
  return hashSubject(parts, {});
}

export const ALICE = subject('alice');
export const BOB = subject('bob');

/** A rule of 3 an hour in a fixed window, scope `a`, with what differs. */
export function rule(differs: Partial<RuleSettings & Plan> = {}): Rule {
  const { limit = 3, windowSec = 3600, ...settings } = differs;
  return new RuleTemplate({ scope: 'a', algorithm: 'fixed-window', ...settings }).at({ limit, windowSec });
}

export const HOURLY = rule();

/** Compares the fields named, with a message that shows the whole reading. */
export function expectReading(reading: Reading, expected: Partial<Reading>, when = ''): void {
  const fields = Object.keys(expected) as (keyof Reading)[];
  const got = Object.fromEntries(fields.map(field => [field, reading[field]]));
  assert.deepEqual(
    got,
    expected,
    `${when} reading ${JSON.stringify(reading)}, expected ${JSON.stringify(expected)}`,
  );
}
