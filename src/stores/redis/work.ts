import type { AlgorithmName } from '../../algorithms/index.js';
import type { HashedSubject, Operation } from '../../core/operation.js';
import type { Rule } from '../../core/rule.js';
import { quickArgs } from './quick.js';

/**
 * What a decision about several subjects does to one of them on a cluster, beside the operations themselves; `lua/decide.lua`
 * says what each means.
 */
export type ClusterOperation =
  | { readonly type: 'judge'; readonly cost: number }
  | { readonly type: 'claim'; readonly holdMs: number; readonly cost: number }
  | {
      readonly type: 'commit' | 'release';
      readonly at: number;
      readonly holdMs: number;
      readonly cost: number;
    };

export interface WorkItem {
  readonly rule: Rule;
  readonly subject: HashedSubject;
  readonly operation: Operation | ClusterOperation;
}

/** The items of one decision. */
export type Work = readonly WorkItem[];

/** A rule as JSON, made once; `batch` and `index` place it in the batch that is being encoded. */
interface RuleCode {
  readonly json: string;
  batch: number;
  index: number;
}

const ALGORITHM_CODES: Record<AlgorithmName, number> = {
  'sliding-window': 1,
  'fixed-window': 2,
  'sliding-log': 3,
  'token-bucket': 4,
  'leaky-bucket': 5,
};

export const ALGORITHM_NAMES = Object.keys(ALGORITHM_CODES) as AlgorithmName[];

/** As `lua/decide.lua` knows it. */
const USUAL_HOLD_MS = 60_000;

const codes = new WeakMap<Rule, RuleCode>();
let batches = 0;

function codeOf(rule: Rule): RuleCode {
  const known = codes.get(rule);
  if (known !== undefined) return known;
  const { scope, algorithm, limit, windowMs, capacity, align, shadow, holdMs, blockMs } = rule;
  // What is usual is left out: it would travel with every call.
  const json = JSON.stringify({
    scope,
    algorithm: ALGORITHM_CODES[algorithm],
    limit,
    window: windowMs,
    ...(capacity === limit ? {} : { capacity }),
    ...(align === 'epoch' ? { epoch: true } : {}),
    ...(shadow ? { shadow } : {}),
    ...(holdMs === USUAL_HOLD_MS ? {} : { hold: holdMs }),
    ...(blockMs.length === 0 ? {} : { ladder: blockMs }),
  });
  const code = { json, batch: 0, index: 0 };
  codes.set(rule, code);
  return code;
}

export interface Encoded {
  readonly keys: readonly string[];
  /** The script's arguments behind the first, which tells of time. */
  readonly args: readonly string[];
}

/** The keys of one call, each once. */
class KeyList {
  readonly list: string[] = [];
  readonly #keyOf: (hash: string) => string;
  /** The first needs no entry in a map: a call of a quiet process speaks of one subject alone. */
  #first = '';
  #others: Map<string, number> | undefined;

  constructor(keyOf: (hash: string) => string) {
    this.#keyOf = keyOf;
  }

  /** From 1, as Lua counts. */
  placeOf(hash: string): number {
    if (hash === this.#first) return 1;
    const known = this.#others?.get(hash);
    if (known !== undefined) return known;
    const place = this.list.push(this.#keyOf(hash));
    if (place === 1) this.#first = hash;
    else (this.#others ??= new Map<string, number>()).set(hash, place);
    return place;
  }
}

/** Encodes decisions for `lua/decide.lua`. */
export function encode(decisions: readonly Work[], keyOf: (hash: string) => string): Encoded {
  return quickly(decisions, keyOf) ?? atLength(decisions, keyOf);
}

/** The usual call: one decision, which is one consume of one rule. */
function quickly(decisions: readonly Work[], keyOf: (hash: string) => string): Encoded | undefined {
  const item = decisions.length === 1 && decisions[0]?.length === 1 ? decisions[0][0] : undefined;
  // Not even a cost that is no number may go astray: the other way answers it with an error.
  if (item?.operation.type !== 'consume' || !(item.operation.cost > 0)) return undefined;
  const args = quickArgs(item.rule, item.operation.cost);
  return args && { keys: [keyOf(item.subject.hash)], args };
}

/** Every subject and every rule once, however many decisions speak of them. */
function atLength(decisions: readonly Work[], keyOf: (hash: string) => string): Encoded {
  batches += 1;
  const keys = new KeyList(keyOf);
  let rules = '';
  let ruleCount = 0;
  // Numbers, and one text of them at the end: a text that grows piece by piece costs several times as much.
  const work: number[] = [];
  for (const items of decisions) {
    work.push(items.length);
    for (const { rule, subject, operation } of items) {
      const code = codeOf(rule);
      if (code.batch !== batches) {
        code.batch = batches;
        code.index = ++ruleCount;
        rules += ruleCount === 1 ? code.json : `,${code.json}`;
      }
      work.push(keys.placeOf(subject.hash), code.index);
      pushOperation(work, operation);
    }
  }
  return { keys: keys.list, args: [`[[${rules}],${JSON.stringify(work)}]`] };
}

function pushOperation(work: number[], operation: WorkItem['operation']): void {
  switch (operation.type) {
    case 'consume':
      work.push(1, operation.cost);
      break;
    case 'peek':
      work.push(2, operation.cost);
      break;
    case 'reserve':
      work.push(3, operation.cost);
      break;
    case 'settle':
      work.push(4, operation.at, operation.held, operation.actual);
      break;
    case 'charge':
      work.push(5, operation.units);
      break;
    case 'refund':
      work.push(6, operation.at, operation.units);
      break;
    case 'block':
      work.push(7, operation.ms ?? -1);
      break;
    case 'unblock':
      work.push(8);
      break;
    case 'reset':
      work.push(9);
      break;
    case 'forgive':
      work.push(10);
      break;
    case 'judge':
      work.push(11, operation.cost);
      break;
    case 'claim':
      work.push(12, operation.holdMs, operation.cost);
      break;
    case 'commit':
    case 'release':
      work.push(operation.type === 'commit' ? 13 : 14, operation.at, operation.holdMs, operation.cost);
      break;
  }
}
