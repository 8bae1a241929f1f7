import type { Check } from '../../core/check.js';
import { decides } from '../../core/operation.js';
import { OPERATOR_DEADLINE_MS, operatorCall, waitAtMost } from '../../core/operator-call.js';
import type { BlockPage, BlockQuery, Store, StoredCell } from '../../core/store.js';
import { liveCells } from '../live-cell.js';
import { Batcher, Waiting } from './batcher.js';
import { BlockIndex } from './block-index.js';
import { Caller } from './caller.js';
import type { Outcomes } from './caller.js';
import { CellReader, storedCells } from './cell-reader.js';
import { storeFailure } from '../../core/store-failure.js';
import { clearKeys } from './clear.js';
import { connectionOf } from './connection.js';
import type { Connection } from './connection.js';
import { DenyCache } from './deny-cache.js';
import { listReply } from './explain.js';
import type { Gate } from './gate.js';
import { checkOptions } from './options.js';
import type { RedisStoreOptions } from './options.js';
import { isHash } from './keys.js';
import type { BlockNews, Outcome } from './outcome.js';
import { errorWord } from './port.js';
import type { RedisPort } from './port.js';
import { FORGET, run } from './scripts.js';
import { decideSpread } from './spread.js';
import { StepPort } from './step-port.js';

/**
 * Counts in Redis ≥ 6.2: all processes that share it share one count, on one clock (the server's).
 *
 * @throws TypeError or RangeError for a wrong option, above all a `client` that is no supported client or has been closed.
 * @example
 * const store = new RedisStore({ client: new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379') });
 * app.use('/api', rateLimit({ scope: 'api.ip', limit: 120, windowSec: 60, store }));
 */
export class RedisStore implements Store {
  readonly #connection: Connection;
  readonly #port: RedisPort;
  readonly #caller: Caller;
  readonly #stepCaller: Caller;
  readonly #gate: Gate;
  readonly #cells: CellReader;
  readonly #index: BlockIndex;
  readonly #denied: DenyCache;
  readonly #batcher: Batcher | undefined;
  /** A call may speak of one subject only: a cluster, or something in front of one. */
  #isSplit: boolean;
  /** Deciding calls without an answer yet. */
  #underWay = 0;

  constructor(options: RedisStoreOptions) {
    const { client, prefix, denyCacheMs, batching, clock } = checkOptions(options);
    this.#connection = connectionOf(client);
    this.#port = this.#connection.port;
    this.#caller = new Caller(this.#port, prefix, clock);
    this.#stepCaller = new Caller(new StepPort(this.#port, this, 'clear'), prefix, clock);
    this.#gate = this.#connection.gate;
    this.#isSplit = this.#port.topology === 'cluster';
    this.#cells = new CellReader(this.#caller, () => this.#isSplit);
    this.#index = new BlockIndex(this.#caller, this.#cells);
    this.#denied = new DenyCache(denyCacheMs, clock);
    this.#batcher = batching ? new Batcher(this.#send, () => this.#underWay === 0) : undefined;
  }

  get lastError(): unknown {
    return this.#connection.lastError.value;
  }

  /**
   * @param deadlineMs how long the caller waits: what reaches the server later counts nothing.
   */
  decide(checks: readonly Check[], deadlineMs?: number): number | Promise<number> {
    const denied = this.#denied.find(checks);
    if (denied !== undefined) return denied;
    const isEffect = !checks.every(asks);
    if (isEffect) this.#denied.drop(checks);
    const { epoch } = this.#denied;
    return new Promise((resolve, reject) => {
      const waiting = new Waiting(checks, deadlineMs, isEffect, epoch, resolve, reject);
      const wait = this.#gate.enter(this.#keyOf(checks), deadlineMs);
      if (wait === undefined) this.#add(waiting);
      else {
        wait.then(() => {
          this.#add(waiting);
        }, reject);
      }
    });
  }

  #keyOf([first]: readonly Check[]): string | undefined {
    return this.#isSplit && first !== undefined ? this.#caller.keyOf(first.subject.hash) : undefined;
  }

  #add(waiting: Waiting): void {
    if (this.#batcher === undefined) this.#send([waiting]);
    else this.#batcher.add(waiting);
  }

  readonly #send = (batch: readonly Waiting[]): void => {
    if (!this.#isSplit) {
      this.#call(batch);
      return;
    }
    const bySubject = new Map<string, Waiting[]>();
    for (const waiting of batch) {
      const hash = waiting.checks[0]?.subject.hash ?? '';
      if (waiting.checks.some(({ subject }) => subject.hash !== hash)) {
        this.#spread(waiting);
        continue;
      }
      const same = bySubject.get(hash);
      if (same === undefined) bySubject.set(hash, [waiting]);
      else same.push(waiting);
    }
    for (const same of bySubject.values()) this.#call(same);
  };

  #spread(waiting: Waiting): void {
    this.#underWay += 1;
    decideSpread(this.#caller, waiting.checks, expiryOf(waiting)).then(
      outcome => {
        this.#underWay -= 1;
        this.#done(waiting, outcome);
      },
      (error: unknown) => {
        this.#underWay -= 1;
        waiting.reject(error);
      },
    );
  }

  #call(batch: readonly Waiting[]): void {
    const [first] = batch;
    if (first === undefined) return;
    this.#underWay += 1;
    const done = (outcomes: Outcomes): void => {
      this.#underWay -= 1;
      batch.forEach((waiting, i) => {
        const outcome = outcomes[i];
        if (outcome === undefined || outcome instanceof Error) waiting.reject(outcome);
        else this.#done(waiting, outcome);
      });
    };
    const failed = (error: unknown): void => {
      this.#underWay -= 1;
      if (errorWord(error) === 'CROSSSLOT' && !this.#isSplit) {
        // It was turned away before anything ran: the same decisions may go again, each by itself.
        this.#split();
        this.#send(batch);
        return;
      }
      for (const { reject } of batch) reject(error);
    };
    try {
      this.#caller.ask(batch.map(checksOf), expiryOf(first), 0, done, failed);
    } catch (error) {
      failed(error);
    }
  }

  #done({ checks, isEffect, epoch, resolve }: Waiting, outcome: Outcome): void {
    const { at, readings, blockStarted, blocks } = outcome;
    readings.forEach((reading, i) => checks[i]?.take(reading, blockStarted.includes(i)));
    if (isEffect) this.#denied.drop(checks);
    this.#denied.learn(checks, at, blocks, epoch);
    resolve(at);
    if (blocks.length > 0) this.#noteBlocks(checks, blocks);
  }

  #split(): void {
    this.#isSplit = true;
    process.emitWarning(
      'limitkeeper: this Redis is a cluster behind one address (CROSSSLOT). From now on every subject is decided in a call ' +
        'of its own, and rules over several subjects in several. Use the cluster client of your package, if it can be reached.',
      { code: 'LIMITKEEPER_REDIS_CROSSSLOT' },
    );
  }

  #noteBlocks(checks: readonly Check[], blocks: readonly BlockNews[]): void {
    for (const { item, news, lastsMs } of blocks) {
      const check = checks[item];
      if (check === undefined) continue;
      const { rule, subject, operation } = check;
      const isNew = news === 'started' || (news === 'stands' && operation.type === 'block');
      if (isNew || news === 'ended') this.#index.note(subject, rule.scope, lastsMs);
    }
  }

  inspect(subjectHash: string): Promise<StoredCell[]> {
    return operatorCall(this, 'inspect', async () => {
      if (!isHash(subjectHash)) return [];
      await this.#gate.enter();
      const { now, cells } = await this.#cells.read([subjectHash]);
      return liveCells(cells.get(subjectHash) ?? [], now);
    });
  }

  reset(subjectHash: string, scope?: string): Promise<StoredCell[]> {
    return operatorCall(this, 'reset', async () => {
      if (!isHash(subjectHash)) return [];
      await this.#gate.enter();
      this.#forgetDenied(subjectHash, scope);
      const { keyOf, timeArgs } = this.#caller;
      const args = [...timeArgs, ...(scope === undefined ? [] : [scope])];
      const [now, removed] = await run(this.#port, FORGET, [keyOf(subjectHash)], args, listReply);
      this.#forgetDenied(subjectHash, scope);
      return liveCells(storedCells(removed), Number(now));
    });
  }

  #forgetDenied(hash: string, scope: string | undefined): void {
    this.#denied.drop([]);
    this.#denied.dropSubject(hash, scope === undefined ? undefined : [scope]);
  }

  blocked(query: BlockQuery = {}): Promise<BlockPage> {
    return operatorCall(this, 'blocked', async () => {
      await this.#gate.enter();
      return this.#index.page(query);
    });
  }

  /** Each step has the deadline: the whole takes as long as there are keys. */
  async clear(scopes?: readonly string[]): Promise<void> {
    if (scopes?.length === 0) return;
    await operatorCall(this, 'clear', async () => this.#gate.enter());
    this.#denied.clear();
    await clearKeys(this.#stepCaller, scopes).catch((error: unknown) => {
      throw storeFailure(this, error);
    });
    this.#denied.clear();
  }

  /** What the list of blocks has not been told by then is left out of it: a server that is frozen must not hold the process. */
  async close(): Promise<void> {
    await waitAtMost(OPERATOR_DEADLINE_MS, this.#index.settled());
    this.#connection.close();
  }
}

const asks = ({ operation }: Check): boolean => decides(operation);
const checksOf = ({ checks }: Waiting): readonly Check[] => checks;

/**
 * Counted from the sending, not from the call: where something has blocked the event loop in between, the caller waits on for
 * as long.
 */
const expiryOf = ({ deadlineMs }: Waiting): number =>
  deadlineMs === undefined ? Infinity : performance.now() + deadlineMs;
