import { parseArgs } from 'node:util';

/** In the order in which they are run and told. */
export const SECTIONS = [
  'middleware',
  'consume',
  'cases',
  'subjects',
  'algorithms',
  'bytes',
  'stops',
  'express',
  'redis',
  'import',
];

export const HELP = `Measures limitkeeper beside other limiters.

  npm run bench -- [section…] [--quick] [--keep | --no-keep]

sections   ${SECTIONS.join(', ')}; all unless some are named
--quick    fewer and shorter bursts, 100,000 subjects for a million: says whether all works, and little else
--keep     renews bench/results/latest.json, docs/performance.md and its chart; a quick run does not unless told so
--no-keep  does not
--render   measures nothing: the page and the chart, out of the results that are kept

LIMITKEEPER_DIST names another build than ../dist, LIMITKEEPER_REDIS_SERVER another redis-server than that on PATH.`;

const FULL = { quick: false, rounds: 25, burst: 20_000, redisBurst: 20_000, million: 1_000_000 };
const QUICK = { quick: true, rounds: 5, burst: 5000, redisBurst: 4000, million: 100_000 };

/** @param {string[]} args */
export function readOptions(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      quick: { type: 'boolean' },
      keep: { type: 'boolean' },
      'no-keep': { type: 'boolean' },
      render: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  const unknown = positionals.filter(name => !SECTIONS.includes(name));
  if (unknown.length > 0)
    throw new Error(`no section ${unknown.join(', ')}; there are ${SECTIONS.join(', ')}`);
  const { quick = false, render = false, help = false } = values;
  const keep = values['no-keep'] !== true && (values.keep ?? !quick);
  const sections = positionals.length === 0 ? SECTIONS : SECTIONS.filter(name => positionals.includes(name));
  return { sections, keep, render, help, scale: quick ? QUICK : FULL };
}
