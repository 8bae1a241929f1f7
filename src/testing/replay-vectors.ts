import type { Reading } from '../core/decision.js';
import type { Operation } from '../core/operation.js';
import { RuleTemplate } from '../core/rule.js';
import type { Rule } from '../core/rule.js';
import type { Store } from '../core/store.js';
import { applyBatch } from './batch.js';
import type { Batch, BatchResult } from './batch.js';
import { hashSubject } from '../core/subject.js';
import { FakeClock } from './fake-clock.js';
import { Receipts, costIn } from './receipts.js';
import type { Mismatch, VectorCase, VectorRule, VectorStep } from './vectors.js';

/** What {@link replayVectors} replays, and against what. */
export interface ReplayOptions {
  /** Makes a store that nobody has counted in, and whose time is that of `clock`. Called once a case; it is closed after. */
  readonly createStore: (options: { readonly clock: FakeClock }) => Store | Promise<Store>;
  /** The cases, e.g. `JSON.parse` of a file of vectors. */
  readonly cases: readonly VectorCase[];
}

/**
 * Replays sequences of operations against a store and reports every value that differs from the expected one.
 *
 * @returns all mismatches, in order; empty when the store reproduces every value. A store that throws is a mismatch of
 * path `error`, and the rest of its case is left out.
 * @throws TypeError or RangeError where a rule of a case is none.
 * @example
 * const cases = JSON.parse(readFileSync('decisions.json', 'utf8'));
 * const createStore = ({ clock }) => new MemoryStore({ clock });
 * assert.deepEqual(await replayVectors({ createStore, cases }), []);
 */
export async function replayVectors({ createStore, cases }: ReplayOptions): Promise<Mismatch[]> {
  const mismatches: Mismatch[] = [];
  for (const vector of cases) {
    const clock = new FakeClock(vector.steps[0]?.now ?? 0);
    const store = await createStore({ clock });
    try {
      mismatches.push(...(await replayCase(vector, store, clock)));
    } finally {
      await store.close();
    }
  }
  return mismatches;
}

async function replayCase(vector: VectorCase, store: Store, clock: FakeClock): Promise<Mismatch[]> {
  const rules = vector.rules.map(ruleOf);
  const subject = hashSubject(['vector', vector.name], {});
  const receipts = new Receipts();
  const mismatches: Mismatch[] = [];
  for (const [index, step] of vector.steps.entries()) {
    clock.set(step.now);
    const batch = rules.map(rule => ({ rule, subject, operation: operationOf(step, rule.scope, receipts) }));
    receipts.spend(step);
    let result: BatchResult;
    try {
      result = await applyBatch(store, batch);
    } catch (error) {
      mismatches.push({ case: vector.name, step: index, path: 'error', expected: undefined, actual: error });
      break;
    }
    const allowed = isAllowed(result, rules);
    if (allowed) keepReceipt(receipts, index, batch, result);
    for (const difference of differences(step, { allowed, readings: result.readings })) {
      mismatches.push({ case: vector.name, step: index, ...difference });
    }
  }
  return mismatches;
}

/** The rule of a vector, made and checked as every other: the options are in seconds. */
export function ruleOf(rule: VectorRule): Rule {
  const { scope, algorithm, align, burst, blockMs, limit, windowMs, holdMs, shadow = false } = rule;
  const template = new RuleTemplate({
    scope,
    algorithm,
    mode: shadow ? 'shadow' : 'enforce',
    holdSec: holdMs / 1000,
    ...(align === undefined ? {} : { align }),
    ...(burst === undefined ? {} : { burst }),
    ...(blockMs === undefined || blockMs === null
      ? {}
      : { blockSec: typeof blockMs === 'number' ? blockMs / 1000 : blockMs.map(ms => ms / 1000) }),
  });
  return template.at({ limit, windowSec: windowMs / 1000 });
}

function operationOf(step: VectorStep, scope: string, receipts: Receipts): Operation {
  switch (step.op) {
    case 'consume':
    case 'peek':
    case 'reserve':
      return { type: step.op, cost: costIn(step.cost, scope) };
    case 'charge':
      return { type: 'charge', units: costIn(step.cost, scope) };
    case 'settle':
    case 'refund':
      return receipts.operation(step, scope);
    case 'block':
      return { type: 'block', ms: step.blockMs ?? null };
    default:
      return { type: step.op };
  }
}

const isAllowed = ({ readings }: BatchResult, rules: readonly Rule[]): boolean =>
  rules.every((rule, i) => rule.shadow || readings[i]?.allowed === true);

function keepReceipt(receipts: Receipts, step: number, batch: Batch, { at, readings }: BatchResult): void {
  const costs = new Map<string, number>();
  let kind: 'consume' | 'reserve' | undefined;
  for (const [i, { rule, operation }] of batch.entries()) {
    if (operation.type !== 'consume' && operation.type !== 'reserve') continue;
    kind = operation.type;
    // A shadow rule that would have refused was not charged.
    if (readings[i]?.allowed === true) costs.set(rule.scope, operation.cost);
  }
  if (kind !== undefined) receipts.keep(step, { kind, at, costs });
}

type Difference = Pick<Mismatch, 'path' | 'expected' | 'actual'>;

function differences(
  { expect }: VectorStep,
  actual: { readonly allowed: boolean; readonly readings: readonly Reading[] },
): Difference[] {
  const found: Difference[] = [];
  const compare = (path: string, expected: unknown, came: unknown): void => {
    if (!Object.is(expected, came)) found.push({ path, expected, actual: came });
  };
  compare('allowed', expect.allowed, actual.allowed);
  compare('readings.length', expect.readings.length, actual.readings.length);
  for (const [i, expected] of expect.readings.entries()) {
    const reading = actual.readings[i];
    for (const [field, value] of Object.entries(expected)) {
      compare(`readings[${String(i)}].${field}`, value, reading?.[field as keyof Reading]);
    }
  }
  return found;
}
