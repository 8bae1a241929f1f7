import * as contenders from '../contenders/middleware.mjs';
import { checkContender, runnerOf } from '../measure/check.mjs';
import { paired } from '../measure/paired.mjs';
import { ask, subjectsOf } from '../measure/requests.mjs';
import { target } from '../report/target.mjs';

const SUBJECTS = 10_000;

export default async function middleware({ rounds, burst }) {
  const { noLimiter, ours, oursLegacy, oursByKey, hit, hitByKey, flexible } = contenders;
  const { expressDraft8, expressLegacy } = contenders;
  const limiting = [ours, oursLegacy, oursByKey, hit, hitByKey, flexible, expressLegacy, expressDraft8];
  for (const contender of limiting) await checkContender(contender);

  const subjectOf = subjectsOf(SUBJECTS);
  const bare = noLimiter.middleware();
  const runners = limiting.map(contender => runnerOf(contender, subjectOf, SUBJECTS));
  const nothing = { name: noLimiter.name, run: i => ask(bare, subjectOf(i)), isRight: res => res.passed };
  const runs = await paired([nothing, ...runners], { rounds, burst });
  for (const runner of runners) await runner.verify();

  const targets = {
    [ours.name]: [target(runs.ratio(ours.name, hit.name), 1, '× hitlimit')],
    [oursLegacy.name]: [
      target(runs.ratio(oursLegacy.name, flexible.name), 1, '× rate-limiter-flexible by hand'),
    ],
    [oursByKey.name]: [
      target(runs.ratio(oursByKey.name, hitByKey.name), 1, '× hitlimit with a function for the key'),
    ],
  };
  return {
    title: 'Middleware on memory',
    note: `One rule, ${SUBJECTS.toLocaleString('en')} subjects, all allowed; default options. Requests come over no network.`,
    columns: [
      { key: 'cpu', label: 'CPU, µs', digits: 2 },
      { key: 'wall', label: 'wall, µs', digits: 2 },
      { key: 'ratio', label: '× hitlimit', digits: 2 },
    ],
    rows: [noLimiter, ...limiting].map(({ name, own }) => ({
      name,
      own,
      cpu: runs.each(name, 'cpu'),
      wall: runs.each(name, 'wall'),
      ratio: runs.ratio(name, hit.name),
      targets: targets[name],
    })),
  };
}
