import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '../..');

export interface CodeBlock {
  /** The nearest heading above. */
  readonly heading: string;
  /** Which of the blocks of this language under that heading, from 0. */
  readonly index: number;
  readonly language: string;
  readonly code: string;
  /** Of the first line of the code, from 1. */
  readonly line: number;
}

export function readMarkdown(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

/** The fenced code blocks of a page, in order. */
export function codeBlocks(markdown: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let heading = '';
  let open: { language: string; start: number } | undefined;
  const lines = markdown.split('\n');
  lines.forEach((line, i) => {
    const fence = /^```(\w*)/.exec(line);
    if (fence === null) {
      if (open === undefined) heading = /^#+ (.*)/.exec(line)?.[1] ?? heading;
      return;
    }
    if (open === undefined) {
      open = { language: fence[1]!, start: i + 1 };
      return;
    }
    const { language, start } = open;
    const index = blocks.filter(block => block.heading === heading && block.language === language).length;
    blocks.push({ heading, index, language, code: `${lines.slice(start, i).join('\n')}\n`, line: start + 1 });
    open = undefined;
  });
  return blocks;
}

/** The rows of the first table below `heading` whose first column is `column`, as objects by column name. */
export function tableRows(markdown: string, heading: string, column: string): Record<string, string>[] {
  const section = markdown.split(/^#+ /m).find(part => part.startsWith(`${heading}\n`)) ?? '';
  const lines = section.split('\n');
  const cells = (line: string): string[] =>
    line
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim());
  const head = lines.findIndex(line => line.startsWith(`| ${column} |`));
  if (head < 0) throw new Error(`no table of ${column} below ${heading}`);
  const names = cells(lines[head]!);
  const rows: Record<string, string>[] = [];
  for (let i = head + 2; lines[i]?.startsWith('|'); i += 1) {
    const row = cells(lines[i]!);
    rows.push(Object.fromEntries(names.map((name, n) => [name, row[n] ?? ''])));
  }
  return rows;
}
