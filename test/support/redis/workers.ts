import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { CallOptions, Subjects } from '../../../src/core/call.js';
import type { LimiterRule } from '../../../src/core/limiter-options.js';
import type { ClusterAddress, SingleAddress } from './clients.js';

/** What one worker process does: plain data, for it goes through a pipe. */
export interface WorkerJob {
  /** A name out of CLIENTS. */
  readonly client: string;
  readonly at: SingleAddress | ClusterAddress;
  /** Options of the RedisStore beside its client. */
  readonly store?: {
    readonly prefix?: string;
    readonly denyCacheMs?: number;
    readonly batching?: boolean;
  };
  readonly rules: readonly LimiterRule[];
  /** Taken in turn, from the first. */
  readonly subjects: readonly Subjects[];
  readonly call?: CallOptions;
  /** Decisions that this worker asks for. */
  readonly consumes: number;
  /** Under way at once. */
  readonly concurrency: number;
  /** A refused call is tried again until it passes or has been tried so often; default 1: never. */
  readonly attempts?: number;
  readonly storeTimeoutMs?: number;
}

/** What one worker saw. */
export interface WorkerReport {
  readonly allowed: number;
  /** Calls refused to the end. */
  readonly refused: number;
  /** Decisions that the store did not make, each of which breaks the test's count. */
  readonly degraded: number;
  /** Passed by subject, in the order of `subjects`. */
  readonly allowedBySubject: readonly number[];
  /** Messages of unhandled rejections and store errors, a few of them. */
  readonly errors: readonly string[];
}

export type ToWorker = { readonly type: 'setup'; readonly job: WorkerJob } | { readonly type: 'go' };
export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'report'; readonly report: WorkerReport }
  | { readonly type: 'failed'; readonly message: string };

const ROOT = join(import.meta.dirname, '..', '..', '..');

/** Real processes, each with its own client, that do one job after another. */
export interface Workers {
  /**
   * Each process connects and says so, and only when all have does the first decision begin. Resolves with what each saw.
   *
   * @param job the same for all, or made for each by its index
   */
  run(job: WorkerJob | ((index: number) => WorkerJob)): Promise<readonly WorkerReport[]>;
  stop(): Promise<void>;
}

/** Starts `n` processes; that takes a second or more each, so start them once for many jobs. */
export function startWorkers(n: number): Workers {
  const workers = Array.from({ length: n }, () =>
    fork(join(import.meta.dirname, 'worker-main.ts'), {
      execArgv: ['--import', 'tsx', '--import', './scripts/lua-loader.js'],
      cwd: ROOT,
      // Jest's own settings are not theirs.
      env: { PATH: process.env['PATH'], NODE_OPTIONS: '' },
    }),
  );
  return {
    async run(job) {
      await Promise.all(
        workers.map((worker, index) => {
          send(worker, { type: 'setup', job: typeof job === 'function' ? job(index) : job });
          return answer(worker, 'ready');
        }),
      );
      const reports = workers.map(worker => answer(worker, 'report'));
      for (const worker of workers) send(worker, { type: 'go' });
      return (await Promise.all(reports)).map(({ report }) => report);
    },
    async stop() {
      await Promise.all(
        workers.map(async worker => {
          if (worker.exitCode !== null || worker.signalCode !== null) return;
          const ended = once(worker, 'exit');
          worker.kill('SIGKILL');
          await ended;
        }),
      );
    },
  };
}

function send(worker: ChildProcess, message: ToWorker): void {
  worker.send(message);
}

function answer<T extends FromWorker['type']>(
  worker: ChildProcess,
  type: T,
): Promise<Extract<FromWorker, { type: T }>> {
  return new Promise((resolve, reject) => {
    const hear = (message: unknown): void => {
      const said = message as FromWorker;
      if (said.type !== type && said.type !== 'failed') return;
      worker.off('message', hear);
      worker.off('exit', over);
      if (said.type === 'failed') reject(new Error(`A worker failed: ${said.message}`));
      else resolve(said as Extract<FromWorker, { type: T }>);
    };
    const over = (code: number | null): void => {
      reject(new Error(`A worker ended (${String(code)}) before it said ${type}.`));
    };
    worker.on('message', hear);
    worker.once('exit', over);
  });
}
