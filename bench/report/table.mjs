// Tables in Markdown, which a terminal shows well enough.

const number = (value, digits) =>
  value === undefined || value === null
    ? '–'
    : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

const short = value => number(value, value >= 100 ? 0 : value >= 10 ? 1 : 2);

/** `0.62 (≤ 0.60) × hitlimit: no` */
const verdict = ({ value, atMost, unit, met }) =>
  `${short(value)} of ≤ ${String(atMost)} ${unit}: ${met ? 'met' : '**not met**'}`;

const line = cells => `| ${cells.join(' | ')} |`;

/** @param {{ title: string, note: string, columns: { key: string, label: string, digits: number }[], rows: object[] }} table */
export function table({ title, note, columns, rows }, level = '##') {
  const judged = rows.some(({ targets }) => targets !== undefined);
  const names = ['', ...columns.map(({ label }) => label), ...(judged ? ['target'] : [])];
  const lines = rows.map(row => {
    const name = row.own ? `**${row.name}**` : row.name;
    const cells = columns.map(({ key, digits }) => number(row[key], digits));
    const targets = judged ? [(row.targets ?? []).map(verdict).join('; ')] : [];
    return line([name, ...cells, ...targets]);
  });
  const rule = line(['---', ...columns.map(() => '---:'), ...(judged ? ['---'] : [])]);
  return [`${level} ${title}`, '', note, '', line(names), rule, ...lines].join('\n');
}

/** One line: how many targets are met. */
export function verdicts({ rows }) {
  const all = rows.flatMap(({ targets }) => targets ?? []);
  const met = all.filter(target => target.met).length;
  return all.length === 0 ? '' : `${met} of ${all.length} targets met`;
}
