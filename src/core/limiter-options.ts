import { knownOptions, oneOf, plainObject, wholeNumber } from './validate.js';
import { Engine } from './engine.js';
import { rangeError, received, receivedSecret, typeError } from './errors.js';
import type { FailMode } from './events.js';
import { RuleTemplate } from './rule.js';
import type { Rule, RuleSettings } from './rule.js';
import { STORE_METHODS } from './store.js';
import type { Store, SyncStore } from './store.js';
import type { Hashing } from './subject.js';
import { refuseRequest } from './uncalled.js';

/** A rule of {@link createLimiter}: its numbers stand here, or come with each call as a plan. */
export interface LimiterRule extends RuleSettings {
  /** Units a window, a whole number; 0 refuses all. */
  readonly limit?: number;
  /**
   * Seconds; 0.5 is half a second. With a small limit take `algorithm: 'fixed-window'`: with the default, `sliding-window`,
   * `limit: 1, windowSec: 60` waits for 120 s.
   */
  readonly windowSec?: number;
  /** Units that a call takes where it names none. Default 1. */
  readonly cost?: number;
}

/** What a limiter needs beside its rules. */
export interface LimiterSettings {
  /** Default: the process's MemoryStore. */
  readonly store?: Store;
  /** What happens when the store fails: `open` (default) lets pass, `closed` refuses, `local` decides in this process. */
  readonly failMode?: FailMode;
  /** The deadline of every call to the store in ms. Default 250. */
  readonly storeTimeoutMs?: number;
  /** Makes subject hashes HMAC-SHA-256 under this secret. */
  readonly hashSecret?: string;
  /** Bits of an IPv6 address that count as one client, 32 to 128. Default 56. */
  readonly ipv6Prefix?: number;
}

export type LimiterOptions = LimiterSettings & (LimiterRule | { readonly rules: readonly LimiterRule[] });

/** Stores that the core must not import; the face hands them in. */
export interface StoreFactories {
  readonly defaultStore: () => Store;
  readonly localStore: () => SyncStore;
}

/** One rule of a limiter, checked. */
export interface LimiterEntry {
  readonly template: RuleTemplate;
  /** The rule with the numbers of the options; `undefined` where they come with each call. */
  readonly own: Rule | undefined;
  readonly cost: number;
}

const RULE_OPTIONS = [
  'scope',
  'limit',
  'windowSec',
  'blockSec',
  'algorithm',
  'burst',
  'align',
  'mode',
  'cost',
  'holdSec',
] as const satisfies readonly (keyof LimiterRule)[];

export const SETTING_OPTIONS = [
  'store',
  'failMode',
  'storeTimeoutMs',
  'hashSecret',
  'ipv6Prefix',
] as const satisfies readonly (keyof LimiterSettings)[];

/** What only the middleware can do, because it sees requests, and what a caller does in its place. */
const OF_THE_MIDDLEWARE: Readonly<Record<string, string>> = {
  keyFn: 'createLimiter is told the subject with each call, consume(subject)',
  when: 'with createLimiter call only where the rule applies',
  skip: 'with createLimiter call only where the limit applies',
  plan: 'createLimiter is told the plan with each call, consume(subject, { plan })',
  count: 'with createLimiter peek first, and charge(subject) what turns out to count',
  strict: 'with createLimiter reserve first, and settle or release what turns out not to count',
  outcome: 'with createLimiter peek first, and charge(subject) what turns out to count',
  resetOnSuccess: 'with createLimiter call forgive(subject)',
  reserve: 'with createLimiter call reserve(subject)',
  onLimited: 'createLimiter answers with a decision, of which allowed is false',
  message: 'createLimiter sends no answer; problemBody(decision, { detail }) makes one',
  headers: 'createLimiter sends no headers; decisionHeaders(decision) makes them',
  countPreflight: 'createLimiter sees no requests',
};

function adviseMiddleware(name: string): string | undefined {
  if (!Object.hasOwn(OF_THE_MIDDLEWARE, name)) return undefined;
  return `It is an option of rateLimit, the middleware; ${OF_THE_MIDDLEWARE[name] ?? ''}.`;
}

/** What to do with options of one rule that stand beside a list of rules. */
export function adviseList(ruleOptions: readonly string[]): (name: string) => string | undefined {
  return name =>
    ruleOptions.includes(name)
      ? `A limiter has one rule, or a list of them: write ${name} into a rule of the list, rules: [{ ${name}: … }], or leave rules out.`
      : undefined;
}

/** @throws TypeError or RangeError that names the option, what was expected and what came. */
export function limiterEntries(options: LimiterOptions): readonly LimiterEntry[] {
  refuseRequest(
    plainObject(options, 'options'),
    'createLimiter makes no middleware: app.use(rateLimit({ … })) is one.',
  );
  if (!('rules' in options)) {
    knownOptions(
      options,
      [...RULE_OPTIONS, ...SETTING_OPTIONS],
      'the options of createLimiter',
      adviseMiddleware,
    );
    return [entryOf(options, '')];
  }
  knownOptions(
    options,
    ['rules', ...SETTING_OPTIONS],
    'the options of createLimiter with rules',
    name => adviseMiddleware(name) ?? adviseList(RULE_OPTIONS)(name),
  );
  const entries = ruleList(options.rules).map((rule, i) => {
    const where = `rules[${String(i)}]`;
    knownOptions(plainObject(rule, where), RULE_OPTIONS, where, adviseMiddleware);
    return entryOf(rule as LimiterRule, `${where}.`);
  });
  checkScopesDiffer(entries.map(({ template }) => template.scope));
  return entries;
}

export function ruleList(rules: unknown): readonly unknown[] {
  // A copy without holes, over which `map` would step in silence.
  if (Array.isArray(rules) && rules.length > 0) return Array.from<unknown>(rules);
  throw typeError(
    'ERR_LIMITKEEPER_OPTION_TYPE',
    `rules must be a list of at least one rule, got ${received(rules)}.`,
    { option: 'rules' },
  );
}

/** Two rules of one scope would count in one cell, and each request twice. */
export function checkScopesDiffer(scopes: readonly string[]): void {
  const twice = scopes.find((scope, i) => scopes.indexOf(scope) !== i);
  if (twice === undefined) return;
  throw typeError(
    'ERR_LIMITKEEPER_DUPLICATE_SCOPE',
    `scope ${JSON.stringify(twice)} names two rules of one limiter. Give each rule a scope of its own, e.g. with its window.`,
    { option: 'scope' },
  );
}

function entryOf(rule: LimiterRule, where: string): LimiterEntry {
  const template = new RuleTemplate(rule, where);
  const { limit, windowSec, cost = 1 } = rule;
  const byPlan = limit === undefined && windowSec === undefined;
  return {
    template,
    // One of the two alone is a mistake: `at` then says which is missing.
    own: byPlan ? undefined : template.at({ limit, windowSec } as { limit: number; windowSec: number }),
    cost: checkCost(cost, `${where}cost`),
  };
}

export function checkCost(cost: unknown, option: string): number {
  // Not -0: JSON, and so a receipt, would bring it back as 0.
  if (typeof cost === 'number' && Number.isSafeInteger(cost) && cost >= 0) return cost + 0;
  const make = typeof cost === 'number' ? rangeError : typeError;
  throw make('ERR_LIMITKEEPER_COST', `${option} must be a whole number ≥ 0, got ${received(cost)}.`, {
    option,
  });
}

/** @param scopes in which it will count */
export function makeEngine(
  settings: LimiterSettings,
  factories: StoreFactories,
  scopes: readonly string[],
): Engine {
  const { store, failMode = 'open', storeTimeoutMs = 250 } = settings;
  oneOf(failMode, 'failMode', ['open', 'closed', 'local']);
  return new Engine({
    store: store === undefined ? factories.defaultStore() : checkStore(store),
    scopes,
    failMode,
    storeTimeoutMs: checkRange(storeTimeoutMs, 'storeTimeoutMs', 1, 60_000),
    localStore: factories.localStore,
  });
}

export function hashingOf({ hashSecret, ipv6Prefix }: LimiterSettings): Hashing {
  if (hashSecret !== undefined && (typeof hashSecret !== 'string' || hashSecret === '')) {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `hashSecret must be a non-empty string, got ${receivedSecret(hashSecret)}.`,
      { option: 'hashSecret' },
    );
  }
  return {
    ...(hashSecret === undefined ? {} : { secret: hashSecret }),
    ...(ipv6Prefix === undefined ? {} : { ipv6Prefix: checkRange(ipv6Prefix, 'ipv6Prefix', 32, 128) }),
  };
}

function checkRange(value: unknown, option: string, min: number, max: number): number {
  const number = wholeNumber(value, option, min);
  if (number <= max) return number;
  throw rangeError(
    'ERR_LIMITKEEPER_OPTION_RANGE',
    `${option} must be a whole number from ${String(min)} to ${String(max)}, got ${received(value)}.`,
    { option },
  );
}

function checkStore(store: unknown): Store {
  if (typeof store !== 'object' || store === null) {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `store must be a store, e.g. new MemoryStore(), got ${receivedSecret(store)}.`,
      { option: 'store' },
    );
  }
  const methods = store as Readonly<Record<string, unknown>>;
  const missing = STORE_METHODS.filter(name => typeof methods[name] !== 'function');
  if (missing.length === 0) return store as Store;
  throw typeError(
    'ERR_LIMITKEEPER_STORE_CONTRACT',
    `store must have the methods ${STORE_METHODS.join(', ')}; this one lacks ${missing.join(', ')}. ` +
      'Pass a MemoryStore, a RedisStore, or backendStore(yourBackend).',
    { option: 'store' },
  );
}
