import type { Engine } from '../core/engine.js';
import { Limiter } from '../core/limiter.js';
import type { StoreFactories } from '../core/limiter-options.js';
import type { Hashing } from '../core/subject.js';
import { countsByAddress, hasLooseEnd, limiterOptions, requestRules } from './options.js';
import type { RequestRule } from './options.js';
import { PROBLEM_DETAIL } from './problem.js';
import { TwiceWatch } from './twice-watch.js';
import type { RateLimitOptions } from './types.js';
import { CreationWatch, ProxyWatch } from './warnings.js';

/** What a middleware is made of, the same for all requests: whatever can be known before one comes is worked out here. */
export class RequestLimiter {
  readonly options: RateLimitOptions;
  readonly rules: readonly RequestRule[];
  /** The same without Express. */
  readonly core: Limiter;
  readonly engine: Engine;
  readonly hashing: Hashing;
  /** The `detail` of the problem form. */
  readonly detail: string | undefined;
  readonly passesPreflights: boolean;
  /** Has it a rule with `reserve: true`? */
  readonly reserves: boolean;
  /** Has it a rule to which the end of a request matters? */
  readonly hasLooseEnds: boolean;
  /**
   * Settles a run before its response leaves. Set where a rule needs it: most of an application's limiters do not, and the
   * file with all that belongs to it is read by then, not while a request waits.
   */
  settler: { settle(run: object): void } | undefined = undefined;
  /** Does every rule count all requests? Then what is decided is charged. */
  readonly countsAll: boolean;
  /** Who counts by something else has no use for addresses, nor for advice on them. */
  readonly proxyWatch: ProxyWatch | undefined;
  readonly twiceWatch = new TwiceWatch();
  readonly creationWatch = new CreationWatch();

  constructor(options: RateLimitOptions, factories: StoreFactories) {
    const rules = requestRules(options);
    this.options = options;
    this.rules = rules;
    this.core = new Limiter(limiterOptions(options, rules), factories);
    this.engine = this.core.engine;
    this.hashing = this.core.hashing;
    this.detail = options.message ?? (options as { readonly [PROBLEM_DETAIL]?: string })[PROBLEM_DETAIL];
    this.passesPreflights = options.countPreflight === false;
    this.reserves = rules.some(({ reserve }) => reserve);
    this.hasLooseEnds = rules.some(hasLooseEnd);
    this.countsAll = rules.every(({ count }) => count === 'all');
    this.proxyWatch = rules.some(countsByAddress) ? new ProxyWatch() : undefined;
  }

  /** All scopes, also of rules that are no part of a request. */
  get scopes(): readonly string[] {
    return this.core.scopes;
  }
}
