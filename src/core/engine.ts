import type { Check } from './check.js';
import { Events } from './events.js';
import type { FailMode } from './events.js';
import type { LimitkeeperError } from './errors.js';
import { Guard } from './guard.js';
import type { Sequel } from './guard.js';
import { Flying, InFlight } from './in-flight.js';
import { isPromise } from './maybe-promise.js';
import type { MaybePromise } from './maybe-promise.js';
import { LOOK } from './operation.js';
import { OPERATOR_DEADLINE_MS, operatorCall, waitAtMost } from './operator-call.js';
import { outageOf } from './outage.js';
import type { Outage } from './outage.js';
import { StandIn } from './stand-in.js';
import type { Store, StoredCell, SyncStore } from './store.js';
import { Verdict } from './verdict.js';

export interface EngineOptions {
  readonly store: Store;
  /** In which it counts, for a warning that the store is away. */
  readonly scopes: readonly string[];
  readonly failMode: FailMode;
  readonly storeTimeoutMs: number;
  /** Makes the store that decides while the real one is away (`failMode: 'local'`). */
  readonly localStore: () => SyncStore;
}

/** An effect, or what a caller wants {@link Engine.settled} to wait for. */
class Work extends Flying {
  readonly promise: Promise<unknown>;

  constructor(promise: Promise<unknown>) {
    super();
    this.promise = promise;
  }
}

/**
 * Has checks decided by a store, behind its guard: answers in the fail mode when the store does not, tells the listeners.
 * Knows nothing of subjects in plain, of Express, or of where checks come from.
 */
export class Engine {
  readonly events = new Events();
  readonly store: Store;
  readonly failMode: FailMode;
  readonly #guard: Guard;
  readonly #standIn: StandIn;
  readonly #outage: Outage;
  /** Twice the deadline: a call gets it once more where something blocked the event loop. */
  readonly #patienceMs: number;
  #degraded = false;
  readonly #underWay = new InFlight<Work>();

  constructor(options: EngineOptions) {
    this.store = options.store;
    this.failMode = options.failMode;
    this.#standIn = new StandIn(options.store, options.localStore);
    this.#guard = new Guard(options.store, options.storeTimeoutMs);
    this.#patienceMs = Math.max(OPERATOR_DEADLINE_MS, 2 * options.storeTimeoutMs);
    this.#outage = outageOf(options.store);
    this.#outage.concerns(options.scopes, options.failMode);
  }

  /**
   * Decides consume, peek and reserve. Never throws, never rejects.
   *
   * @param quiet somebody only looks: listeners hear nothing of the verdict.
   */
  decide(checks: readonly Check[], quiet = false): MaybePromise<Verdict> {
    // Only stores own time, but no store is asked here.
    if (checks.length === 0) return this.#announce(new Verdict(checks, Date.now(), undefined), quiet);
    return this.#guard.run(checks, quiet ? this.#look : this.#decision);
  }

  readonly #decision: Sequel<Verdict> = this.#deciding(false);
  readonly #look: Sequel<Verdict> = this.#deciding(true);

  #deciding(quiet: boolean): Sequel<Verdict> {
    return {
      answered: (checks, at) => {
        if (this.#degraded && checks[0]?.repeated !== true) this.#recovered();
        return this.#decided(checks, at, quiet);
      },
      failed: (checks, error) => {
        this.#failed(error, false);
        if (this.failMode !== 'local')
          return this.#announce(new Verdict([], Date.now(), this.failMode), quiet);
        // Afresh: the store may yet write into the others.
        const again = checks.map(check => check.with(check.operation));
        return this.#decided(again, this.#standIn.decide(again), quiet, 'local');
      },
    };
  }

  /**
   * Applies operations that do not decide (or looks), and answers how things stand after them.
   *
   * @param local the decision that this belongs to was made by the local store: the effect goes there.
   */
  effect(checks: readonly Check[], local = false): MaybePromise<Verdict> {
    if (checks.length === 0) return new Verdict(checks, Date.now(), undefined);
    if (local) return this.#effectLocally(checks);
    return this.track(this.#guard.run(checks, this.#effect));
  }

  readonly #effect: Sequel<Verdict> = {
    answered: (checks, at) => {
      if (this.#degraded) this.#recovered();
      this.#standIn.follow(checks);
      this.#announceBlocks(checks, at);
      return new Verdict(checks, at, undefined);
    },
    failed: (checks, error) => {
      const isLocal = this.failMode === 'local';
      this.#failed(error, !isLocal || checks.some(isBound));
      if (!isLocal || checks.every(isBound)) return new Verdict([], Date.now(), this.failMode);
      return this.#effectLocally(checks.map(check => check.with(isBound(check) ? LOOK : check.operation)));
    },
  };

  /**
   * Forgets a subject in one scope, here and in the store that decides while the real one is away.
   *
   * @returns what the store removed. Rejects when it fails, or has not answered in 5 s.
   */
  async forget(subjectHash: string, scope: string): Promise<readonly StoredCell[]> {
    const removed = await operatorCall(this.store, 'reset', () => this.store.reset(subjectHash, scope));
    await this.#standIn.forget(subjectHash, scope);
    return removed;
  }

  /** Resolves once every effect under way has been answered, or has had the time for it. */
  async settled(): Promise<void> {
    await waitAtMost(this.#patienceMs, this.#allSettled());
  }

  async #allSettled(): Promise<void> {
    while (this.#underWay.size > 0) {
      await Promise.allSettled(this.#underWay.list().map(({ promise }) => promise));
    }
  }

  /** Lets {@link settled} wait for work of a caller, e.g. an outcome that is still being found out. */
  track<T>(work: MaybePromise<T>): MaybePromise<T> {
    if (!isPromise(work)) return work;
    const entry = new Work(work);
    this.#underWay.add(entry);
    const done = () => {
      this.#underWay.remove(entry);
    };
    work.then(done, done);
    return work;
  }

  #decided(checks: readonly Check[], at: number, quiet: boolean, degraded?: 'local'): Verdict {
    this.#announceBlocks(checks, at);
    return this.#announce(new Verdict(checks, at, degraded), quiet);
  }

  #effectLocally(checks: readonly Check[]): Verdict {
    const at = this.#standIn.decide(checks);
    this.#announceBlocks(checks, at);
    return new Verdict(checks, at, 'local');
  }

  #failed(error: LimitkeeperError, dropped: boolean): void {
    this.#outage.failed(error);
    this.events.emit('store-error', { error, dropped });
    if (this.#degraded) return;
    this.#degraded = true;
    this.events.emit('degraded', { failMode: this.failMode, error });
  }

  #recovered(): void {
    this.#degraded = false;
    this.#outage.ended();
    this.events.emit('recovered', {});
  }

  #announce(verdict: Verdict, quiet: boolean): Verdict {
    const { events } = this;
    if (quiet || events.isSilent) return verdict;
    const name = verdict.allowed ? 'allowed' : 'refused';
    if (events.has(name)) {
      const { scope = null, subject } = verdict.binding ?? {};
      events.emit(name, { scope, subjectHash: subject?.hash ?? null, decision: verdict.decision });
    }
    if (events.has('shadow-refused')) {
      for (const check of verdict.checks) {
        if (check.shadow && !check.allowed) this.#tellOf('shadow-refused', check, verdict.at);
      }
    }
    return verdict;
  }

  #announceBlocks(checks: readonly Check[], at: number): void {
    if (this.events.isSilent || !this.events.has('blocked')) return;
    for (const check of checks) if (check.blockStarted) this.#tellOf('blocked', check, at);
  }

  #tellOf(name: 'blocked' | 'shadow-refused', check: Check, at: number): void {
    const { scope, subject, described } = check;
    this.events.emit(name, { scope, subjectHash: subject.hash, reading: described, at });
  }
}

/** A settle or refund speaks of units that lie in the store that is away: holds lapse by themselves. */
function isBound({ operation: { type } }: Check): boolean {
  return type === 'settle' || type === 'refund';
}
