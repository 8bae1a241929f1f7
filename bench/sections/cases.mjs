import * as cases from '../contenders/cases.mjs';
import { paired } from '../measure/paired.mjs';
import { target } from '../report/target.mjs';

export default async function casesSection({ rounds, burst }) {
  const one = cases.one();
  const three = cases.three();
  const handedOn = await cases.blocked(cases.handOn);
  const failure = await cases.byOutcome(401);
  const success = await cases.byOutcome(200);
  const settled = await cases.settled();
  const limits = [
    [three, 2],
    [handedOn, 0.6],
    [failure, 3],
    [success, 3],
    [settled, 3],
  ];
  const runners = [
    one,
    three,
    await cases.refusals(cases.handOn),
    await cases.refusals(),
    await cases.refusalsByHand(),
    handedOn,
    await cases.blocked(),
    await cases.blockedByHand(),
    failure,
    success,
    settled,
  ];
  const runs = await paired(runners, { rounds, burst });
  const atMost = new Map(limits.map(([{ name }, most]) => [name, most]));
  return {
    title: 'What a request may meet',
    note: 'Middleware on memory, 1,000 subjects. Refusals are handed to `onLimited`, which hands them on, or answered as by default.',
    columns: [
      { key: 'cpu', label: 'CPU, µs', digits: 2 },
      { key: 'ratio', label: '× one rule, allowed', digits: 2 },
    ],
    rows: runners.map(({ name, own }) => {
      const ratio = runs.ratio(name, one.name);
      const most = atMost.get(name);
      return {
        name,
        own,
        cpu: runs.each(name, 'cpu'),
        ratio,
        targets: most === undefined ? undefined : [target(ratio, most, '× one rule, allowed')],
      };
    }),
  };
}
