import { typeError } from '../core/errors.js';
import type { Limiter } from '../core/limiter.js';
import type { LimiterEntry } from '../core/limiter-options.js';
import type { Rule } from '../core/rule.js';
import type { Store } from '../core/store.js';
import type { Hashing } from '../core/subject.js';
import { refuse } from '../http/reply.js';
import { ScopeCounts } from './totals.js';

/** A scope that the router handles, with everything needed to act on its subjects. */
export interface ManagedScope {
  readonly scope: string;
  /** The rule as the first limiter has it. */
  readonly entry: LimiterEntry;
  /**
   * The limiters with a rule of this scope: one, or several that count in the same cells. Each keeps a local store for
   * outages, so each must hear of a reset.
   */
  readonly limiters: readonly [Limiter, ...Limiter[]];
  readonly counts: ScopeCounts;
}

/** Scopes that share a store and a way to hash: a subject has one hash in all of them. */
export interface ScopeGroup {
  readonly store: Store;
  readonly hashing: Hashing;
  readonly scopes: readonly ManagedScope[];
}

/** Every scope of the router's limiters. */
export class ManagedScopes {
  readonly all: readonly ManagedScope[];
  readonly groups: readonly ScopeGroup[];
  /** Every store once, with the scopes that are counted there, by name. */
  readonly stores: readonly {
    readonly store: Store;
    readonly scopes: ReadonlyMap<string, ManagedScope>;
  }[];
  readonly #byName: ReadonlyMap<string, ManagedScope>;

  /**
   * @throws TypeError `ERR_LIMITKEEPER_DUPLICATE_SCOPE` where two limiters count one scope in different places: nobody could
   * tell which is meant.
   */
  constructor(limiters: readonly Limiter[]) {
    const byName = new Map<string, ManagedScope>();
    for (const limiter of limiters) {
      for (const entry of limiter.entries) {
        const { scope } = entry.template;
        const known = byName.get(scope);
        if (known !== undefined) checkSameCells(scope, known.limiters[0], limiter);
        byName.set(
          scope,
          known === undefined
            ? { scope, entry, limiters: [limiter], counts: new ScopeCounts() }
            : { ...known, limiters: [...known.limiters, limiter] },
        );
      }
    }
    this.#byName = byName;
    this.all = [...byName.values()];
    this.groups = groupsOf(this.all);
    this.stores = [...new Set(this.groups.map(({ store }) => store))].map(store => ({
      store,
      scopes: new Map(
        this.groups
          .filter(group => group.store === store)
          .flatMap(({ scopes }) => scopes.map(managed => [managed.scope, managed] as const)),
      ),
    }));
  }

  find(scope: string): ManagedScope | undefined {
    return this.#byName.get(scope);
  }

  /** @throws Refusal 404 that lists the scopes there are. */
  get(scope: string): ManagedScope {
    return (
      this.find(scope) ??
      refuse(404, 'scope: there is no rule of this scope here.', {
        field: 'scope',
        scopes: this.all.map(({ scope: name }) => name),
      })
    );
  }
}

/**
 * A rule to act on cells with. Blocks and resets belong to scope and subject, so where a rule lives by plans any numbers do.
 */
export function actingRule({ template, own }: LimiterEntry): Rule {
  return own ?? template.at({ limit: 1, windowSec: 1 });
}

function checkSameCells(scope: string, a: Limiter, b: Limiter): void {
  if (a.engine.store === b.engine.store && sameHashing(a.hashing, b.hashing)) return;
  throw typeError(
    'ERR_LIMITKEEPER_DUPLICATE_SCOPE',
    `scope ${JSON.stringify(scope)} is counted by two limiters with different stores or hashing. Give each a scope of its own, or each a router.`,
    { option: 'limiters' },
  );
}

function sameHashing(a: Hashing, b: Hashing): boolean {
  return a.secret === b.secret && a.ipv6Prefix === b.ipv6Prefix;
}

function groupsOf(scopes: readonly ManagedScope[]): readonly ScopeGroup[] {
  const groups: { store: Store; hashing: Hashing; scopes: ManagedScope[] }[] = [];
  for (const managed of scopes) {
    const { engine, hashing } = managed.limiters[0];
    const group = groups.find(one => one.store === engine.store && sameHashing(one.hashing, hashing));
    if (group === undefined) groups.push({ store: engine.store, hashing, scopes: [managed] });
    else group.scopes.push(managed);
  }
  return groups;
}
