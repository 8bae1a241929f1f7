// How the cost of a decision grows with the number of subjects. Each library by itself in a process, paired with itself.
import { flexible, ours } from '../contenders/limiter.mjs';
import * as middlewares from '../contenders/middleware.mjs';
import { checkContender, loaded, runnerOf } from '../measure/check.mjs';
import { inChild } from '../measure/child.mjs';
import { paired } from '../measure/paired.mjs';
import { subjectsOf } from '../measure/requests.mjs';
import { target } from '../report/target.mjs';

const CONTENDERS = {
  'limitkeeper, consume': ours,
  'limitkeeper, middleware': middlewares.ours,
  'rate-limiter-flexible, consume': flexible,
  'hitlimit, middleware': middlewares.hit,
  'express-rate-limit, middleware': middlewares.expressLegacy,
};
const FEW = 1000;

export default async function subjects(scale) {
  if (scale.alone !== undefined) return alone(scale);
  const counts = [1, FEW, 10_000, scale.million];
  const label = count => count.toLocaleString('en');
  const rows = [];
  for (const name of Object.keys(CONTENDERS)) {
    const costs = await inChild(new URL(import.meta.url), { ...scale, alone: name, counts });
    const { own } = CONTENDERS[name];
    const targets = own ? [target(costs.ratio, 2, `× ${label(FEW)} subjects`)] : undefined;
    rows.push({ name, own, ...costs, targets });
  }
  return {
    title: 'Memory with few subjects and with many',
    note: 'One rule, all allowed. CPU of a decision, µs.',
    columns: [
      ...counts.map(count => ({ key: String(count), label: label(count), digits: 2 })),
      { key: 'ratio', label: `${label(scale.million)} × ${label(FEW)}`, digits: 2 },
    ],
    rows,
  };
}

async function alone({ alone: name, counts, rounds, burst }) {
  const contender = CONTENDERS[name];
  await checkContender(contender);
  const runners = [];
  for (const count of counts) {
    const runner = { ...runnerOf(contender, subjectsOf(count), count), name: count };
    await loaded;
    // All of them are there before anything is timed.
    for (let i = 0; i < count; i += 1) await runner.run(i);
    runners.push(runner);
  }
  const runs = await paired(
    runners.map(({ run, ...runner }, n) => ({ ...runner, run: i => run(i + counts[n]) })),
    { rounds, burst },
  );
  for (const runner of runners) await runner.verify();
  const costs = Object.fromEntries(counts.map(count => [count, runs.each(count, 'cpu')]));
  return { ...costs, ratio: runs.ratio(counts.at(-1), FEW) };
}
