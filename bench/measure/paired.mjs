// Paired bursts: in each round every contender runs one burst, in an order that changes, and what it took is divided by what
// another took in the same round. Told are medians over the rounds, so that a busy machine disturbs all alike.
//
// Garbage is not collected before a burst: after `gc()` the engine compiles anew and starts with a small young generation, and
// short bursts cost five times what they cost in a process that serves.
import { loaded } from './check.mjs';
import { median } from './median.mjs';

/**
 * @typedef {object} Runner
 * @property {string} name
 * @property {(i: number) => unknown} run one call; `i` counts up, over all bursts
 * @property {(answer: unknown, i: number) => boolean} isRight of what a call resolves with
 */

/**
 * @param {Runner[]} runners
 * @param {object} options
 * @param {number} options.rounds
 * @param {number} options.burst calls of each in a round
 * @param {number} [options.lanes] calls under way at once
 * @param {(runner: Runner) => Promise<Record<string, number>>} [options.gauges] readings that only grow, taken before and
 * after each burst beside CPU and wall clock, in µs
 */
export async function paired(runners, { rounds, burst, lanes = 1, gauges = () => ({}) }) {
  const next = new Map(runners.map(runner => [runner, 0]));
  const once = async runner => {
    const from = next.get(runner);
    next.set(runner, from + burst);
    await runBurst(runner, from, burst, lanes);
  };
  await loaded;
  // Twice, for the compiler.
  for (const runner of runners) await once(runner);
  for (const runner of runners) await once(runner);

  const taken = new Map(runners.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < runners.length; turn += 1) {
      const runner = runners[(turn + round) % runners.length];
      taken.get(runner.name).push(
        await measured(
          () => once(runner),
          burst,
          () => gauges(runner),
        ),
      );
    }
  }
  return {
    /** Median of what one call takes, in µs. */
    each: (name, what) => median(taken.get(name).map(round => round[what])),
    /** Median of the ratios within a round. */
    ratio: (name, to, what = 'cpu') =>
      median(taken.get(name).map((round, i) => round[what] / taken.get(to)[i][what])),
  };
}

async function runBurst({ name, run, isRight }, from, calls, lanes) {
  const end = from + calls;
  let next = from;
  const lane = async () => {
    while (next < end) {
      const i = next++;
      const answer = await run(i);
      if (!isRight(answer, i)) throw new Error(`${name} gave a wrong answer in a timed burst.`);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function measured(work, calls, gauges) {
  const before = await gauges();
  const cpuBefore = process.cpuUsage();
  const start = process.hrtime.bigint();
  await work();
  const wall = Number(process.hrtime.bigint() - start) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const after = await gauges();
  const grown = Object.entries(after).map(([name, value]) => [name, (value - before[name]) / calls]);
  return { cpu: (user + system) / calls, wall: wall / calls, ...Object.fromEntries(grown) };
}
