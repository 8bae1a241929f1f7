import type { Decision } from '../core/decision.js';
import { Check } from '../core/check.js';
import type { Engine } from '../core/engine.js';
import { LOOK } from '../core/operation.js';
import type { HashedSubject, Operation } from '../core/operation.js';
import type { Rule } from '../core/rule.js';
import { hashSubject } from '../core/subject.js';
import type { Hashing } from '../core/subject.js';
import { ask, storeFailed } from '../http/deadline.js';
import { refuse } from '../http/reply.js';
import { isEndpointScope, ruleOf, scopeOf } from './endpoint.js';

/** How one user stands at one endpoint. */
export interface Usage {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly windowSec: number;
  /** Unix time in whole seconds: of a refusal when to come back, else when nothing is used any more. `null`: never. */
  readonly reset: number | null;
}

export type Verdict =
  | { readonly kind: 'allowed' | 'refused'; readonly usage: Usage; readonly retryAfterSec: number | null }
  /** The store failed and the fail mode let pass (or refused) uncounted. */
  | { readonly kind: 'uncounted'; readonly allowed: boolean };

/** A user's cells lie together: without an end to them he could make every one of his own requests slow. */
const MOST_ENDPOINTS = 1000;
const AT_ONCE = 50;
/** A service waits for its answer while its own client waits, too. */
const QUICK_MS = 1000;

/** Counts requests per user and endpoint, in a sliding log. Knows nothing of HTTP but how to refuse. */
export class RateChecks {
  readonly #engine: Engine;
  readonly #hashing: Hashing;
  readonly #limit: number;
  readonly #windowSec: number;

  /** @throws TypeError or RangeError for a limit or a window that makes no rule. */
  constructor(engine: Engine, hashing: Hashing, limit: number, windowSec: number) {
    ruleOf('', limit, windowSec);
    this.#engine = engine;
    this.#hashing = hashing;
    this.#limit = limit;
    this.#windowSec = windowSec;
  }

  /**
   * Records the request if there is room for it.
   *
   * @throws Refusal 422 where it would be the user's first at a 1,001st endpoint; then nothing is recorded.
   */
  async check(userId: string, endpoint: string): Promise<Verdict> {
    const { rule, subject } = this.#cell(userId, endpoint);
    const { decision } = await this.#engine.decide([new Check(rule, subject, { type: 'consume', cost: 1 })]);
    const usage = this.#usage(decision);
    if (usage === undefined) return { kind: 'uncounted', allowed: decision.allowed };
    if (!decision.allowed) {
      const { retryAfterMs } = decision;
      return {
        kind: 'refused',
        usage,
        retryAfterSec: retryAfterMs === null ? null : Math.max(1, Math.ceil(retryAfterMs / 1000)),
      };
    }
    // Only a first request can be one too many: this costs a question to the store once a window and endpoint.
    if (usage.used === 1 && decision.degraded === undefined)
      await this.#boundEndpoints(rule, subject, decision);
    return { kind: 'allowed', usage, retryAfterSec: null };
  }

  /** How things stand. Writes nothing. @throws Refusal 503 where the store fails. */
  async status(userId: string, endpoint: string): Promise<Usage> {
    const { rule, subject } = this.#cell(userId, endpoint);
    const { decision } = await this.#engine.decide([new Check(rule, subject, LOOK)], true);
    return this.#usage(decision) ?? storeFailed('it did not answer');
  }

  /** Forgets a user at one endpoint, or at all. @returns at how many something was forgotten. */
  async reset(userId: string, endpoint: string | undefined): Promise<number> {
    const { hash } = hashSubject(userId, this.#hashing);
    const scopes = endpoint === undefined ? await this.#liveScopes(hash) : [scopeOf(endpoint)];
    let removed = 0;
    for (let i = 0; i < scopes.length; i += AT_ONCE) {
      const cells = await Promise.all(
        scopes.slice(i, i + AT_ONCE).map(scope => ask(() => this.#engine.forget(hash, scope))),
      );
      removed += cells.filter(list => list.length > 0).length;
    }
    return removed;
  }

  /**
   * The request is counted already, so that of two at once each sees the other: together they may both be turned away where
   * one had room, and never both let in where neither had.
   */
  async #boundEndpoints(rule: Rule, subject: HashedSubject, { at }: Decision): Promise<void> {
    const live = await this.#countLive(subject.hash);
    if (live <= MOST_ENDPOINTS) return;
    const giveBack: Operation = { type: 'refund', at, units: 1 };
    await this.#engine.effect([new Check(rule, subject, giveBack)]);
    refuse(
      422,
      `This user has ${String(MOST_ENDPOINTS)} endpoints with requests in the window, the most there may be.`,
      {
        errors: [{ field: 'endpoint' }],
      },
    );
  }

  /** 0 where the store fails now, having counted a moment ago, and requests then pass. */
  async #countLive(hash: string): Promise<number> {
    try {
      return (await this.#liveScopes(hash, QUICK_MS)).length;
    } catch (error) {
      if (this.#engine.failMode === 'closed') throw error;
      return 0;
    }
  }

  async #liveScopes(hash: string, deadlineMs?: number): Promise<string[]> {
    const cells = await ask(() => this.#engine.store.inspect(hash), deadlineMs);
    return cells.map(({ scope }) => scope).filter(isEndpointScope);
  }

  #cell(userId: string, endpoint: string): { rule: Rule; subject: HashedSubject } {
    return {
      rule: ruleOf(endpoint, this.#limit, this.#windowSec),
      subject: hashSubject(userId, this.#hashing),
    };
  }

  /** `undefined` where the store failed and nobody counted. */
  #usage({ readings: [reading], at }: Decision): Usage | undefined {
    if (reading === undefined) return undefined;
    const { limit, remaining, allowed, retryAfterMs, resetAfterMs } = reading;
    const wait = allowed ? resetAfterMs : retryAfterMs;
    return {
      limit,
      used: limit - remaining,
      remaining,
      windowSec: this.#windowSec,
      reset: wait === null ? null : Math.ceil((at + wait) / 1000),
    };
  }
}
