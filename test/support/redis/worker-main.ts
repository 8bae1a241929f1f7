// One worker process of `startWorkers`, started by it with tsx.
import { createLimiter } from '../../../src/index.js';
import { RedisStore } from '../../../src/stores/redis/index.js';
import { clientKind } from './clients.js';
import type { FromWorker, ToWorker, WorkerJob, WorkerReport } from './workers.js';

const errors = new Set<string>();
const note = (error: unknown): void => {
  if (errors.size < 5) errors.add(error instanceof Error ? error.message : String(error));
};
process.on('unhandledRejection', error => {
  note(`unhandled rejection: ${String(error)}`);
});

let run: (() => Promise<WorkerReport>) | undefined;
let close = (): void => undefined;

process.on('message', (message: ToWorker) => {
  const step = message.type === 'setup' ? setup(message.job) : go();
  step.catch((error: unknown) => {
    say({ type: 'failed', message: String(error) });
  });
});
process.on('disconnect', () => process.exit());

function say(message: FromWorker): void {
  process.send?.(message);
}

async function setup(job: WorkerJob): Promise<void> {
  close();
  errors.clear();
  const kind = clientKind(job.client);
  const opened = 'addresses' in job.at ? kind.cluster(job.at) : kind.single(job.at);
  const { client, ready } = opened;
  close = opened.close;
  await ready;
  const limiter = createLimiter({
    rules: job.rules,
    store: new RedisStore({ client, ...job.store }),
    storeTimeoutMs: job.storeTimeoutMs ?? 10_000,
    failMode: 'closed',
  });
  limiter.on('store-error', ({ error }) => {
    note(error);
  });
  run = () => hammer(job, limiter);
  say({ type: 'ready' });
}

async function go(): Promise<void> {
  if (run === undefined) throw new Error('go came before setup.');
  say({ type: 'report', report: await run() });
}

async function hammer(job: WorkerJob, limiter: ReturnType<typeof createLimiter>): Promise<WorkerReport> {
  const allowedBySubject = job.subjects.map(() => 0);
  let started = 0;
  let refused = 0;
  let degraded = 0;

  const one = async (index: number): Promise<void> => {
    const which = index % job.subjects.length;
    const subject = job.subjects[which];
    if (subject === undefined) return;
    for (let attempt = 1; ; attempt++) {
      const decision = await limiter.consume(subject, job.call);
      if (decision.degraded !== undefined) degraded++;
      if (decision.allowed) {
        allowedBySubject[which] = (allowedBySubject[which] ?? 0) + 1;
        return;
      }
      if (attempt >= (job.attempts ?? 1)) break;
      // Callers that back off by the same time meet again.
      await new Promise(resolve => setTimeout(resolve, 1 + Math.random() * 10));
    }
    refused++;
  };
  const lane = async (): Promise<void> => {
    while (started < job.consumes) await one(started++);
  };
  await Promise.all(Array.from({ length: job.concurrency }, lane));
  return {
    allowed: allowedBySubject.reduce((sum, n) => sum + n, 0),
    refused,
    degraded,
    allowedBySubject,
    errors: [...errors],
  };
}
