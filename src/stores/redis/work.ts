import type { AlgorithmName } from '../../algorithms/index.js';
import type { HashedSubject, Operation } from '../../core/operation.js';
import type { Rule } from '../../core/rule.js';

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
  /** `rules,work`: the end of the script's argument. */
  readonly tail: string;
}

/** Encodes decisions for `lua/decide.lua`: every subject and every rule once, however many decisions speak of them. */
export function encode(decisions: readonly Work[], keyOf: (hash: string) => string): Encoded {
  batches += 1;
  const keys: string[] = [];
  const places = new Map<string, number>();
  let rules = '';
  let ruleCount = 0;
  let work = '';
  for (const items of decisions) {
    work += `${work === '' ? '' : ','}${String(items.length)}`;
    for (const { rule, subject, operation } of items) {
      let place = places.get(subject.hash);
      if (place === undefined) {
        place = keys.push(keyOf(subject.hash));
        places.set(subject.hash, place);
      }
      const code = codeOf(rule);
      if (code.batch !== batches) {
        code.batch = batches;
        code.index = ++ruleCount;
        rules += ruleCount === 1 ? code.json : `,${code.json}`;
      }
      work += `,${String(place)},${String(code.index)},${operationCode(operation)}`;
    }
  }
  return { keys, tail: `[${rules}],[${work}]` };
}

function operationCode(operation: WorkItem['operation']): string {
  switch (operation.type) {
    case 'consume':
      return `1,${String(operation.cost)}`;
    case 'peek':
      return `2,${String(operation.cost)}`;
    case 'reserve':
      return `3,${String(operation.cost)}`;
    case 'settle':
      return `4,${String(operation.at)},${String(operation.held)},${String(operation.actual)}`;
    case 'charge':
      return `5,${String(operation.units)}`;
    case 'refund':
      return `6,${String(operation.at)},${String(operation.units)}`;
    case 'block':
      return `7,${String(operation.ms ?? -1)}`;
    case 'unblock':
      return '8';
    case 'reset':
      return '9';
    case 'forgive':
      return '10';
    case 'judge':
      return `11,${String(operation.cost)}`;
    case 'claim':
      return `12,${String(operation.holdMs)},${String(operation.cost)}`;
    case 'commit':
    case 'release':
      return `${operation.type === 'commit' ? '13' : '14'},${String(operation.at)},${String(operation.holdMs)},${String(operation.cost)}`;
  }
}
