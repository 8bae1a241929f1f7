// The figures in docs/performance.md, between two marks.
import { readFile, writeFile } from 'node:fs/promises';
import { table } from './table.mjs';

const file = new URL('../../docs/performance.md', import.meta.url);
const BEGIN = '<!-- figures: written by `npm run bench`, not by hand -->';
const END = '<!-- /figures -->';

export async function writePage(results) {
  const page = await readFile(file, 'utf8');
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`docs/performance.md must have ${BEGIN} and ${END}.`);
  const figures = Object.values(results).flatMap(({ tables, ...where }) =>
    tables.map(one => `${table(one, '###')}\n\n${circumstances(where)}`),
  );
  const text = [page.slice(0, begin) + BEGIN, ...figures, page.slice(end)].join('\n\n');
  await writeFile(file, text);
}

function circumstances({ at, quick, machine }) {
  const { processor, cores, memoryGb, system, node, load } = machine;
  const run = quick ? 'A quick run, of few and short bursts' : 'Run';
  return `*${run} on ${at.slice(0, 10)}: ${processor}, ${cores} cores, ${memoryGb} GB, ${system}, Node ${node}; load of the minute before ${load}.*`;
}
