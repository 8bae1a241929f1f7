// docs/images/performance.svg: bars, in colours that are read on white and on black.
import { writeFile } from 'node:fs/promises';

const file = new URL('../../docs/images/performance.svg', import.meta.url);

/** Which columns are drawn. The shorter a bar, the better. */
const PANELS = [
  { section: 'middleware', key: 'cpu', title: 'Middleware on memory, µs of CPU a request' },
  { section: 'bytes', key: 'many', title: subjects => `Bytes a subject, ${subjects} subjects` },
  { section: 'express', key: 'cpu', title: 'Express over HTTP, µs of CPU a request' },
  { section: 'redis', key: 'cpu', title: 'Redis, 64 at once, µs of CPU a decision' },
];

const WIDTH = 760;
const LABELS = 330;
const BAR = 16;
const STEP = 24;
const HEAD = 40;
const VALUE = 60;

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .own { font-weight: 600; }
  rect { fill: #8c959f; }
  rect.own { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    rect { fill: #6e7681; }
    rect.own { fill: #4493f8; }
  }`;

const escape = text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const short = value => value.toLocaleString('en', { maximumSignificantDigits: 3 });

export async function writeChart(results) {
  let top = 0;
  const panels = [];
  for (const { section, key, title } of PANELS) {
    const [shown] = results[section]?.tables ?? [];
    if (shown === undefined) continue;
    const { label } = shown.columns.find(column => column.key === key);
    const rows = shown.rows.filter(row => typeof row[key] === 'number' && !/a block of/.test(row.name));
    panels.push(panel(typeof title === 'string' ? title : title(label), rows, key, top));
    top += HEAD + rows.length * STEP;
  }
  const height = top + 12;
  await writeFile(
    file,
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>limitkeeper beside other limiters; shorter is better</title>
<style>${STYLE}
</style>
${panels.join('\n')}
</svg>
`,
  );
}

function panel(title, rows, key, top) {
  const most = Math.max(...rows.map(row => row[key]));
  const scale = (WIDTH - LABELS - VALUE) / most;
  const bars = rows.map((row, i) => {
    const y = top + HEAD + i * STEP;
    const width = Math.max(1, row[key] * scale);
    const kind = row.own ? ' class="own"' : '';
    return `<text x="${LABELS - 10}" y="${y + 13}" text-anchor="end"${kind}>${escape(row.name)}</text>
<rect x="${LABELS}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" rx="2"${kind}/>
<text x="${(LABELS + width + 6).toFixed(1)}" y="${y + 13}">${short(row[key])}</text>`;
  });
  return [`<text class="title" x="${LABELS}" y="${top + 28}">${escape(title)}</text>`, ...bars].join('\n');
}
