import { algorithms } from '../algorithms/index.js';
import type { AlgorithmName, AlgorithmRule } from '../algorithms/index.js';
import { knownOptions, milliseconds, oneOf, wholeNumber } from './validate.js';
import { rangeError, received, typeError } from './errors.js';
import { warnOfMilliseconds } from './looks-like-ms.js';

/** `enforce` refuses; `shadow` counts, blocks and reports but never refuses; `off` is absent. */
export type Mode = 'enforce' | 'shadow' | 'off';

/** A rule as stores and `decide` see it: checked, in milliseconds, frozen. */
export interface Rule extends AlgorithmRule {
  readonly scope: string;
  readonly algorithm: AlgorithmName;
  readonly shadow: boolean;
  /** The rungs of the block ladder in milliseconds; empty: no block. */
  readonly blockMs: readonly number[];
  readonly holdMs: number;
  /** The numbers that it was made from, complete: `template.at(rule.plan)` makes the same rule again. */
  readonly plan: Plan;
}

/** The numbers that may differ from call to call: what `plan` returns. Seconds, as everywhere in options. */
export interface Plan {
  readonly limit: number;
  readonly windowSec: number;
  readonly burst?: number;
  readonly blockSec?: number | readonly number[];
}

/** The part of a rule's options that does not need a request. */
export interface RuleSettings {
  /** What is counted, e.g. `login.password.email_ip`; names the rule. At most 128 characters. */
  readonly scope: string;
  /** Default `sliding-window`. */
  readonly algorithm?: AlgorithmName;
  /** Buckets only: the most units that pass at once. Default: the limit (token), 1 (leaky). */
  readonly burst?: number;
  /** Fixed window only: where windows start. Default `first-hit`. */
  readonly align?: 'first-hit' | 'epoch';
  /** Seconds that a refusal blocks the subject; a list is a ladder. Default 0: no block. */
  readonly blockSec?: number | readonly number[];
  /** Seconds that a reservation holds its units at least (at most twice as long). Default 60. */
  readonly holdSec?: number;
  /** Default `enforce`. */
  readonly mode?: Mode;
}

/** Longer keeps more than 2^52 scaled units in a cell, and doubles would round. */
const MAX_SCALED = 2 ** 52;
const MAX_LOG = 1000;
const MAX_CACHED_PLANS = 64;
const ALGORITHM_NAMES = Object.keys(algorithms) as AlgorithmName[];

/**
 * A rule whose limit and window may come with each call. `at(plan)` makes the frozen {@link Rule}; the same numbers give
 * the same object, so that a thousand requests of one plan check it once.
 */
export class RuleTemplate {
  readonly scope: string;
  readonly mode: Mode;
  readonly algorithm: AlgorithmName;
  readonly #settings: RuleSettings;
  readonly #where: string;
  readonly #cache = new Map<string, Rule>();

  /** @param where prefix of option names in errors: `''`, or `'rules[1].'`. */
  constructor(settings: RuleSettings, where = '') {
    this.scope = checkScope(settings.scope, `${where}scope`);
    this.mode =
      settings.mode === undefined
        ? 'enforce'
        : oneOf(settings.mode, `${where}mode`, ['enforce', 'shadow', 'off']);
    this.#where = where;
    checkFixedSettings(settings, where);
    // A copy: rules are made of it as long as the program runs, and the caller's object may change.
    const { blockSec } = settings;
    this.#settings = { ...settings, ...(typeof blockSec === 'object' ? { blockSec: [...blockSec] } : {}) };
    this.algorithm = settings.algorithm ?? 'sliding-window';
  }

  /** @throws TypeError or RangeError when the numbers are no rule, naming the option. */
  at(plan: Plan, where = this.#where): Rule {
    const { limit, windowSec, burst = this.#settings.burst, blockSec = this.#settings.blockSec } = plan;
    const numbers = { limit, windowSec, burst, blockSec };
    // The key is text: '5' and 5 look alike, and only the latter is a limit.
    if (!areNumbers(numbers)) return makeRule(this.#settings, this.mode, numbers, where);
    const key = `${String(limit)} ${String(windowSec)} ${String(burst)} ${String(blockSec)}`;
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const rule = makeRule(this.#settings, this.mode, numbers, where);
    if (this.#cache.size >= MAX_CACHED_PLANS) this.#cache.clear();
    this.#cache.set(key, rule);
    return rule;
  }
}

function areNumbers({ limit, windowSec, burst = 0, blockSec = 0 }: RuleNumbers): boolean {
  const blocks: readonly unknown[] = Array.isArray(blockSec) ? blockSec : [blockSec];
  return [limit, windowSec, burst, ...blocks].every(value => typeof value === 'number');
}

/** @throws a TypeError or RangeError that says which value of the plan of which scope is wrong. */
export function checkPlan(plan: unknown, scope: string): Plan {
  const where = `the plan of scope ${JSON.stringify(scope)}`;
  if (typeof plan !== 'object' || plan === null || Array.isArray(plan)) {
    throw typeError(
      'ERR_LIMITKEEPER_PLAN',
      `${where} must be { limit, windowSec, burst?, blockSec? } or 'unlimited', got ${received(plan)}.`,
      {
        option: 'plan',
      },
    );
  }
  knownOptions(plan, ['limit', 'windowSec', 'burst', 'blockSec'], where);
  return plan as Plan;
}

function checkScope(scope: unknown, option: string): string {
  if (typeof scope !== 'string') {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `${option} must be a string that names what is counted, e.g. 'api.ip', got ${received(scope)}.`,
      {
        option,
      },
    );
  }
  if (scope === '' || scope.length > 128 || /\p{Cc}/u.test(scope) || !scope.isWellFormed()) {
    throw rangeError(
      'ERR_LIMITKEEPER_OPTION_RANGE',
      `${option} must have 1 to 128 characters and no control characters, got ${received(scope)} of ${String(scope.length)}.`,
      { option },
    );
  }
  return scope;
}

function checkFixedSettings(settings: RuleSettings, where: string): void {
  const { algorithm = 'sliding-window' } = settings;
  oneOf(algorithm, `${where}algorithm`, ALGORITHM_NAMES);
  if (settings.align !== undefined) {
    oneOf(settings.align, `${where}align`, ['first-hit', 'epoch']);
    if (algorithm !== 'fixed-window') {
      throw typeError(
        'ERR_LIMITKEEPER_OPTION_TYPE',
        `${where}align applies to algorithm 'fixed-window' only, got it with '${algorithm}'.`,
        {
          option: `${where}align`,
        },
      );
    }
  }
  if (settings.burst !== undefined && !isBucket(algorithm)) {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `${where}burst applies to 'token-bucket' and 'leaky-bucket' only, got it with '${algorithm}'.`,
      { option: `${where}burst` },
    );
  }
  if (settings.burst !== undefined) wholeNumber(settings.burst, `${where}burst`, 1);
  ladder(settings.blockSec, `${where}blockSec`);
  if (settings.holdSec !== undefined) milliseconds(settings.holdSec, `${where}holdSec`, { zero: false });
}

const isBucket = (algorithm: AlgorithmName): boolean =>
  algorithm === 'token-bucket' || algorithm === 'leaky-bucket';

function ladder(blockSec: unknown, option: string): readonly number[] {
  if (blockSec === undefined || blockSec === 0) return [];
  if (!Array.isArray(blockSec)) return [milliseconds(blockSec, option, { zero: true })];
  if (blockSec.length === 0) {
    throw rangeError(
      'ERR_LIMITKEEPER_OPTION_RANGE',
      `${option} as a ladder must have at least one step, got an empty list.`,
      {
        option,
      },
    );
  }
  // Unlike map, this sees the holes of a sparse list.
  return Array.from(blockSec, (step, i) => milliseconds(step, `${option}[${String(i)}]`, { zero: false }));
}

/** What a user gave, unchecked. */
interface RuleNumbers {
  readonly limit: unknown;
  readonly windowSec: unknown;
  readonly burst: unknown;
  readonly blockSec: unknown;
}

function makeRule(settings: RuleSettings, mode: Mode, numbers: RuleNumbers, where: string): Rule {
  const { scope, algorithm = 'sliding-window', align = 'first-hit', holdSec = 60 } = settings;
  const limit = wholeNumber(numbers.limit, `${where}limit`, isBucket(algorithm) ? 1 : 0);
  const windowMs = milliseconds(numbers.windowSec, `${where}windowSec`, { zero: false });
  const blockMs = Object.freeze(ladder(numbers.blockSec, `${where}blockSec`));
  const holdMs = milliseconds(holdSec, `${where}holdSec`, { zero: false });
  warnOfMilliseconds(`${where}windowSec`, windowMs);
  for (const ms of blockMs) warnOfMilliseconds(`${where}blockSec`, ms);
  warnOfMilliseconds(`${where}holdSec`, holdMs);
  if (algorithm === 'sliding-log' && limit > MAX_LOG) {
    throw rangeError(
      'ERR_LIMITKEEPER_OPTION_RANGE',
      `${where}limit must be at most ${String(MAX_LOG)} with 'sliding-log', which keeps one entry a unit, got ${received(limit)}. Use 'sliding-window'.`,
      { option: `${where}limit` },
    );
  }
  if (numbers.burst !== undefined && !isBucket(algorithm)) {
    throw typeError(
      'ERR_LIMITKEEPER_PLAN',
      `${where}burst applies to buckets only, got it with '${algorithm}'.`,
      { option: `${where}burst` },
    );
  }
  const burst = numbers.burst === undefined ? undefined : wholeNumber(numbers.burst, `${where}burst`, 1);
  const capacity = burst ?? (algorithm === 'leaky-bucket' ? 1 : limit);
  checkExactness(capacity, windowMs, `${where}${burst === undefined ? 'limit' : 'burst'}`);
  if (isBucket(algorithm)) checkBucketRate(limit, windowMs, capacity, `${where}burst`);
  const plan = {
    limit,
    windowSec: windowMs / 1000,
    ...(isBucket(algorithm) ? { burst: capacity } : {}),
    blockSec: blockMs.length === 0 ? 0 : blockMs.map(ms => ms / 1000),
  };
  return Object.freeze({
    scope,
    algorithm,
    limit,
    windowMs,
    capacity,
    align,
    shadow: mode === 'shadow',
    blockMs,
    holdMs,
    plan: Object.freeze(plan),
  });
}

function checkExactness(capacity: number, windowMs: number, option: string): void {
  if (capacity * windowMs <= MAX_SCALED) return;
  throw rangeError(
    'ERR_LIMITKEEPER_EXACTNESS',
    `${option} × window in ms must be at most 2^52 for exact counting, got ${String(capacity)} × ${String(windowMs)}. ` +
      `With this window at most ${String(Math.floor(MAX_SCALED / windowMs))} units: take a shorter window, or count in larger units (thousands of tokens).`,
    { option },
  );
}

/** Whole milliseconds cannot space units closer than that, so a smaller burst would quietly pass less than the limit. */
function checkBucketRate(limit: number, windowMs: number, capacity: number, option: string): void {
  if (limit <= windowMs || capacity * windowMs >= limit + windowMs) return;
  throw rangeError(
    'ERR_LIMITKEEPER_OPTION_RANGE',
    `${option} must be at least ${String(Math.ceil(limit / windowMs) + 1)} for ${String(limit)} units in ${String(windowMs)} ms: ` +
      `a rate above one unit a millisecond needs a burst of limit / window + 1, got ${String(capacity)}.`,
    { option },
  );
}

/** What a client is told as the window: for a bucket the time to refill it from empty, which is the window where burst = limit. */
export function policyWindowMs({ algorithm, limit, windowMs, capacity }: Rule): number {
  return isBucket(algorithm) ? Math.ceil((capacity * windowMs) / limit) : windowMs;
}
