import type { AlgorithmName } from '../../algorithms/index.js';
import type { Rule } from '../../core/rule.js';

/** What the short way of the script (`lua/shared/quick.lua`) is told of a rule, made once. */
interface QuickCode {
  readonly kind: string;
  readonly head: string;
  readonly window: string;
  /** The ladder, and the limit of a bucket. */
  readonly more: readonly string[];
}

/** How values begin whose only content is a counter of this algorithm, see `lua/shared/cell.lua`. */
const LETTERS: Partial<Record<AlgorithmName, string>> = {
  'sliding-window': 's',
  'fixed-window': 'f',
  'token-bucket': 't',
  'leaky-bucket': 'l',
};

/** From here on a count, or a level and the time that it takes to drain, may not fit such a value. */
const TOO_MANY = 2 ** 32;
const TOO_FULL = 2 ** 47;

const codes = new WeakMap<Rule, QuickCode | 'none'>();

/** The script's arguments for one consume, behind the first; `undefined` where the counter may not fit. */
export function quickArgs(rule: Rule, cost: number): readonly string[] | undefined {
  let code = codes.get(rule);
  if (code === undefined) {
    code = codeOf(rule) ?? 'none';
    codes.set(rule, code);
  }
  if (code === 'none') return undefined;
  const room = (rule.capacity - cost) * rule.windowMs;
  return [code.kind, code.head, code.window, String(cost), String(room), ...code.more];
}

function codeOf({
  scope,
  algorithm,
  limit,
  windowMs,
  capacity,
  align,
  blockMs,
}: Rule): QuickCode | undefined {
  const letter = LETTERS[algorithm];
  const isBucket = letter === 't' || letter === 'l';
  // A charge may add up to twice the capacity.
  const fits = isBucket ? 2 * capacity * windowMs < TOO_FULL : 2 * capacity < TOO_MANY;
  if (letter === undefined || !fits) return undefined;
  const ladder = blockMs.length === 0 ? '' : JSON.stringify(blockMs);
  return {
    kind: isBucket ? 'b' : letter === 'f' && align === 'epoch' ? 'e' : letter,
    head: `${letter}${hexadecimal(windowMs)}:${scope}`,
    window: String(windowMs),
    more: isBucket ? [ladder, String(limit)] : ladder === '' ? [] : [ladder],
  };
}

/** Mostly whole seconds, which take two or three bytes less for each subject. */
const hexadecimal = (ms: number): string =>
  ms % 1000 === 0 ? (ms / 1000).toString(16) : `${ms.toString(16)}m`;
