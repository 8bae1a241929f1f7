import { nodeCrypto } from './builtin.js';
import { describe, fold, uncounted, unlimited } from './decision.js';
import type { Decision, Receipt, ReceiptEntry, RuleReading } from './decision.js';
import { Events } from './events.js';
import type { FailMode } from './events.js';
import type { LimitkeeperError } from './errors.js';
import { Guard } from './guard.js';
import type { Answer, Conclude } from './guard.js';
import { Flying, InFlight } from './in-flight.js';
import { isPromise } from './maybe-promise.js';
import type { MaybePromise } from './maybe-promise.js';
import { LOOK } from './operation.js';
import type { Batch, BatchItem } from './operation.js';
import { OPERATOR_DEADLINE_MS, operatorCall, waitAtMost } from './operator-call.js';
import { outageOf } from './outage.js';
import type { Outage } from './outage.js';
import { StandIn } from './stand-in.js';
import type { BatchResult, Store, StoredCell, SyncStore } from './store.js';

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

/** Receipts are told apart across processes; the counter makes them cheap. */
let receiptPrefix: string | undefined;
let receipts = 0;

/**
 * Runs batches on a store, behind its guard: folds readings into decisions, answers in the fail mode when the store does
 * not, tells the listeners. Knows nothing of subjects in plain, of Express, or of where batches come from.
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
   * Decides a batch of consume, peek and reserve. Never throws, never rejects.
   *
   * @param quiet somebody only looks: listeners hear nothing of the verdict.
   */
  decide(batch: Batch, quiet = false): MaybePromise<Decision> {
    // Only stores own time, but no store is asked here.
    if (batch.length === 0) return this.#announce(batch, unlimited(Date.now()), quiet);
    return this.#guard.run(batch, quiet ? this.#concludeLook : this.#concludeDecision);
  }

  readonly #concludeDecision: Conclude<Decision> = (answer, batch) => this.#concluded(answer, batch, false);
  readonly #concludeLook: Conclude<Decision> = (answer, batch) => this.#concluded(answer, batch, true);

  #concluded(answer: Answer, batch: Batch, quiet: boolean): Decision {
    if (!answer.ok) return this.#decideDegraded(batch, answer.error, quiet);
    if (answer.result.repeated !== true) this.#recovered();
    return this.#decided(batch, answer.result, quiet);
  }

  /**
   * Applies operations that do not decide (or looks), and answers how things stand after them.
   *
   * @param local the decision that this belongs to was made by the local store: the effect goes there.
   */
  effect(batch: Batch, local = false): MaybePromise<Decision> {
    if (batch.length === 0) return unlimited(Date.now());
    if (local) return this.#effectLocally(batch);
    return this.track(this.#guard.run(batch, this.#concludeEffect));
  }

  readonly #concludeEffect: Conclude<Decision> = (answer, batch) => {
    if (!answer.ok) return this.#effectFailed(batch, answer.error);
    this.#recovered();
    this.#standIn.follow(batch);
    this.#announceBlocks(batch, answer.result);
    return standing(batch, answer.result);
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

  #decided(batch: Batch, result: BatchResult, quiet: boolean, degraded?: 'local'): Decision {
    const decision = standing(batch, result, degraded);
    if (decision.allowed) addReceipt(decision, batch, degraded !== undefined);
    this.#announceBlocks(batch, result);
    return this.#announce(batch, decision, quiet);
  }

  #decideDegraded(batch: Batch, error: LimitkeeperError, quiet: boolean): Decision {
    this.#failed(error, false);
    if (this.failMode === 'local') return this.#decided(batch, this.#standIn.apply(batch), quiet, 'local');
    return this.#announce(batch, uncounted(this.failMode, Date.now()), quiet);
  }

  #effectFailed(batch: Batch, error: LimitkeeperError): Decision {
    const isLocal = this.failMode === 'local';
    this.#failed(error, !isLocal || batch.some(isBound));
    if (!isLocal || batch.every(isBound)) return uncounted(this.failMode, Date.now());
    return this.#effectLocally(batch.map(item => (isBound(item) ? { ...item, operation: LOOK } : item)));
  }

  #effectLocally(batch: Batch): Decision {
    const result = this.#standIn.apply(batch);
    this.#announceBlocks(batch, result);
    return standing(batch, result, 'local');
  }

  #failed(error: LimitkeeperError, dropped: boolean): void {
    this.#outage.failed(error);
    this.events.emit('store-error', { error, dropped });
    if (this.#degraded) return;
    this.#degraded = true;
    this.events.emit('degraded', { failMode: this.failMode, error });
  }

  #recovered(): void {
    if (!this.#degraded) return;
    this.#degraded = false;
    this.#outage.ended();
    this.events.emit('recovered', {});
  }

  #announce(batch: Batch, decision: Decision, quiet: boolean): Decision {
    const { events } = this;
    if (quiet) return decision;
    const name = decision.allowed ? 'allowed' : 'refused';
    if (events.has(name)) {
      const { scope } = decision;
      const subjectHash = batch.find(item => item.rule.scope === scope)?.subject.hash ?? null;
      events.emit(name, { scope, subjectHash, decision });
    }
    if (events.has('shadow-refused')) {
      decision.readings.forEach((reading, i) => {
        if (reading.shadow && !reading.allowed)
          this.#tellOf('shadow-refused', batch, i, reading, decision.at);
      });
    }
    return decision;
  }

  #announceBlocks(batch: Batch, result: BatchResult): void {
    if (!this.events.has('blocked')) return;
    for (const i of result.blockStarted) {
      const [item, reading] = [batch[i], result.readings[i]];
      if (item === undefined || reading === undefined) continue;
      this.#tellOf('blocked', batch, i, describe(item.rule, reading), result.at);
    }
  }

  #tellOf(
    name: 'blocked' | 'shadow-refused',
    batch: Batch,
    i: number,
    reading: Decision['readings'][number],
    at: number,
  ): void {
    const item = batch[i];
    if (item === undefined) return;
    this.events.emit(name, { scope: item.rule.scope, subjectHash: item.subject.hash, reading, at });
  }
}

/** A settle or refund speaks of units that lie in the store that is away: holds lapse by themselves. */
function isBound({ operation: { type } }: BatchItem): boolean {
  return type === 'settle' || type === 'refund';
}

/** How things stand after a batch. Lists are made at their length: one that grows from nothing takes 17 places at once. */
function standing(batch: Batch, { readings, at }: BatchResult, degraded?: 'local'): Decision {
  const described = new Array<RuleReading>(batch.length);
  for (let i = 0; i < batch.length; i += 1) {
    const [item, reading] = [batch[i], readings[i]];
    if (item !== undefined && reading !== undefined) described[i] = describe(item.rule, reading);
  }
  return fold(described, at, degraded);
}

const consumes = ({ operation }: BatchItem): boolean => operation.type === 'consume';

/** A receipt names what one kind of operation took: what was consumed, or else the reservations. */
function addReceipt(decision: Mutable<Decision>, batch: Batch, local: boolean): void {
  const kind = batch.some(consumes) ? 'consume' : 'reserve';
  let rules: ReceiptEntry[] | undefined;
  for (let i = 0; i < batch.length; i += 1) {
    const item = batch[i];
    if (item?.operation.type !== kind || decision.readings[i]?.allowed !== true) continue;
    const { rule, operation } = item;
    const entry = { scope: rule.scope, cost: operation.cost, plan: rule.plan };
    if (rules === undefined) rules = [entry];
    else rules.push(entry);
  }
  if (rules === undefined) return;
  receiptPrefix ??= nodeCrypto().randomUUID();
  receipts += 1;
  const receipt: Mutable<Receipt> = {
    id: `${receiptPrefix}-${String(receipts)}`,
    kind,
    at: decision.at,
    rules,
  };
  if (local) receipt.local = true;
  decision.receipt = receipt;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
