import { CLIENTS } from '../support/redis/clients.js';
import { startCluster, type RedisCluster } from '../support/redis/cluster.js';
import { type RedisServer, startRedis } from '../support/redis/server.js';
import { startWorkers, type WorkerJob, type WorkerReport, type Workers } from '../support/redis/workers.js';

jest.setTimeout(120_000);

const PROCESSES = 8;
const LIMIT = 1_000;

let workers: Workers;
beforeAll(() => {
  workers = startWorkers(PROCESSES);
});
afterAll(() => workers.stop());

const sum = (reports: readonly WorkerReport[], field: 'allowed' | 'refused' | 'degraded'): number =>
  reports.reduce((total, report) => total + report[field], 0);

/** A mixed fleet: one count, whichever client each process has. */
const clientOf = (index: number): string => CLIENTS[index % CLIENTS.length]!.name;

async function hammer(job: Omit<WorkerJob, 'client'>): Promise<readonly WorkerReport[]> {
  const reports = await workers.run(index => ({ client: clientOf(index), ...job }));
  expect(reports.flatMap(({ errors }) => errors)).toEqual([]);
  expect(sum(reports, 'degraded')).toBe(0);
  return reports;
}

describe('eight processes on one server', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it.each([true, false])('get exactly the limit out of one subject (batching: %s)', async batching => {
    const reports = await hammer({
      at: { port: redis.port },
      store: { batching, prefix: `fleet-${String(batching)}`, denyCacheMs: 0 },
      rules: [{ scope: 'fleet', limit: LIMIT, windowSec: 3_600 }],
      subjects: ['somebody'],
      consumes: 400,
      concurrency: 32,
    });
    expect([sum(reports, 'allowed'), sum(reports, 'refused')]).toEqual([LIMIT, PROCESSES * 400 - LIMIT]);
  });

  it('get exactly the limit with units of different sizes and two rules of one subject', async () => {
    const reports = await hammer({
      at: { port: redis.port },
      store: { prefix: 'fleet-two' },
      rules: [
        { scope: 'fleet.minute', limit: 900, windowSec: 3_600, algorithm: 'fixed-window' },
        { scope: 'fleet.day', limit: LIMIT, windowSec: 86_400, algorithm: 'sliding-log' },
      ],
      subjects: ['somebody'],
      call: { cost: { 'fleet.minute': 3, 'fleet.day': 1 } },
      consumes: 100,
      concurrency: 16,
    });
    expect(sum(reports, 'allowed')).toBe(300);
  });
});

describe('eight processes on a cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  it('get exactly the limit out of each of many subjects', async () => {
    const subjects = Array.from({ length: 40 }, (_, i) => `subject ${String(i)}`);
    const reports = await hammer({
      at: { addresses: cluster.addresses },
      store: { prefix: 'fleet-many' },
      rules: [{ scope: 'fleet', limit: 25, windowSec: 3_600 }],
      subjects,
      consumes: 40 * 5,
      concurrency: 32,
    });
    const passed = subjects.map((_, i) =>
      reports.reduce((total, { allowedBySubject }) => total + allowedBySubject[i]!, 0),
    );
    expect(passed).toEqual(subjects.map(() => 25));
  });

  it('get never more than the limit of two rules over two subjects, and all of it once refused callers have retried', async () => {
    const reports = await hammer({
      at: { addresses: cluster.addresses },
      store: { prefix: 'fleet-pair', denyCacheMs: 0 },
      rules: [
        { scope: 'fleet.account', limit: LIMIT, windowSec: 3_600 },
        { scope: 'fleet.address', limit: LIMIT, windowSec: 3_600 },
      ],
      // Of different slots, and so of different masters, three times out of four.
      subjects: [{ 'fleet.account': 'alice', 'fleet.address': '192.0.2.1' }],
      consumes: 140,
      concurrency: 16,
      attempts: 15,
    });
    expect([sum(reports, 'allowed'), sum(reports, 'refused')]).toEqual([LIMIT, PROCESSES * 140 - LIMIT]);
  });
});
