import { flexible, ours, oursThree } from '../contenders/limiter.mjs';
import { checkContender, runnerOf } from '../measure/check.mjs';
import { paired } from '../measure/paired.mjs';
import { subjectsOf } from '../measure/requests.mjs';
import { target } from '../report/target.mjs';

const SUBJECTS = 10_000;

export default async function consume({ rounds, burst }) {
  const contenders = [ours, oursThree, flexible];
  for (const contender of contenders) await checkContender(contender);
  const runners = contenders.map(contender => runnerOf(contender, subjectsOf(SUBJECTS), SUBJECTS));
  const runs = await paired(runners, { rounds, burst });
  for (const runner of runners) await runner.verify();

  const targets = {
    [ours.name]: [target(runs.ratio(ours.name, flexible.name), 1, '× rate-limiter-flexible')],
    [oursThree.name]: [target(runs.ratio(oursThree.name, ours.name), 2, '× one rule')],
  };
  return {
    title: 'limiter.consume on memory',
    note: `${SUBJECTS.toLocaleString('en')} subjects, all allowed, without Express.`,
    columns: [
      { key: 'cpu', label: 'CPU, µs', digits: 2 },
      { key: 'ratio', label: '× rate-limiter-flexible', digits: 2 },
    ],
    rows: contenders.map(({ name, own }) => ({
      name,
      own,
      cpu: runs.each(name, 'cpu'),
      ratio: runs.ratio(name, flexible.name),
      targets: targets[name],
    })),
  };
}
