// Every algorithm in its steady state: each subject asks just less often than it may. Time is the bench's own, a millisecond
// a decision, so that a log is as full as it gets.
import assert from 'node:assert/strict';
import { createLimiter, MemoryStore } from '../limitkeeper.mjs';
import { paired } from '../measure/paired.mjs';
import { subjectsOf } from '../measure/requests.mjs';
import { target } from '../report/target.mjs';

const LIMIT = 1000;
const SUBJECTS = 100;
const WINDOW_MS = LIMIT * SUBJECTS - 1000;
const NAMES = ['sliding-window', 'fixed-window', 'token-bucket', 'leaky-bucket', 'sliding-log'];

async function runnerOf(algorithm) {
  let now = 1e12;
  const store = new MemoryStore({ clock: { now: () => now } });
  const small = createLimiter({
    scope: 'small',
    algorithm,
    limit: 5,
    windowSec: 60,
    burst: burstOf(algorithm, 5),
    store,
  });
  for (let i = 0; i < 5; i += 1) assert.equal((await small.consume('somebody')).allowed, true);
  assert.equal((await small.consume('somebody')).allowed, false);

  const limiter = createLimiter({
    scope: 'bench',
    algorithm,
    limit: LIMIT,
    windowSec: WINDOW_MS / 1000,
    burst: burstOf(algorithm, LIMIT),
    store,
  });
  const subjectOf = subjectsOf(SUBJECTS);
  const run = i => {
    now += 1;
    return limiter.consume(subjectOf(i));
  };
  for (let i = 0; i < WINDOW_MS; i += 1) await run(i);
  return { name: algorithm, run: i => run(i + WINDOW_MS), isRight: decision => decision.allowed };
}

/** What a bucket holds; the windows have none. */
const burstOf = (algorithm, limit) => (algorithm.endsWith('bucket') ? limit : undefined);

export default async function algorithms({ rounds, burst }) {
  const runners = [];
  for (const name of NAMES) runners.push(await runnerOf(name));
  const runs = await paired(runners, { rounds, burst });
  return {
    title: 'Algorithms',
    note: `limiter.consume on memory, limit ${LIMIT.toLocaleString('en')}, ${SUBJECTS} subjects that come just seldom enough; a log has some ${Math.round(WINDOW_MS / SUBJECTS)} entries.`,
    columns: [
      { key: 'cpu', label: 'CPU, µs', digits: 2 },
      { key: 'ratio', label: '× sliding window', digits: 2 },
    ],
    rows: NAMES.map(name => {
      const ratio = runs.ratio(name, 'sliding-window');
      return {
        name: `limitkeeper, ${name}`,
        own: true,
        cpu: runs.each(name, 'cpu'),
        ratio,
        targets: name === 'sliding-log' ? [target(ratio, 3, '× sliding window')] : undefined,
      };
    }),
  };
}
