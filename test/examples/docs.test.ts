import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { createLimiter, MemoryStore } from 'limitkeeper';
import type { LimiterRule } from 'limitkeeper';
import { FakeClock } from 'limitkeeper/testing';
import { codeBlocks, readMarkdown, tableRows } from '../support/markdown.js';

const root = path.join(__dirname, '../..');
const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(path.join(root, 'docs')).map(name => `docs/${name}`),
].filter(name => name.endsWith('.md'));

describe('docs/algorithms.md', () => {
  const page = readMarkdown('docs/algorithms.md');
  const examples = codeBlocks(page).filter(({ language }) => language === 'json');

  test('has an example of every algorithm, and of blocks', () => {
    expect(examples.map(({ heading }) => heading)).toEqual([
      'fixed-window',
      'sliding-window',
      'sliding-log',
      'token-bucket',
      'leaky-bucket',
      'Blocks',
    ]);
  });

  test.each(examples)('the example of $heading comes out as it is written', async ({ heading, code }) => {
    const clock = new FakeClock(0);
    const limiter = createLimiter({
      ...(JSON.parse(code) as LimiterRule),
      store: new MemoryStore({ clock }),
    });
    const rows = tableRows(page, heading, 'time');
    expect(rows.length).toBeGreaterThan(3);
    for (const row of rows) {
      clock.set(Number(row['time']) * 1000);
      const { allowed, remaining, retryAfterMs } = await limiter.consume('somebody', {
        cost: Number(row['cost']),
      });
      expect({
        ...row,
        allowed: allowed ? 'yes' : 'no',
        remaining: String(remaining),
        wait: retryAfterMs === null ? 'never' : String(retryAfterMs / 1000),
      }).toEqual(row);
    }
  });
});

test('docs/errors.md lists every code of the library, and no other', () => {
  const documented = tableRows(readMarkdown('docs/errors.md'), 'Error codes', 'code').map(row =>
    row['code']!.replaceAll('`', ''),
  );
  const source = readFileSync(path.join(root, 'src/core/errors.ts'), 'utf8');
  const known = [...source.matchAll(/^ {2}\| '(ERR_LIMITKEEPER_\w+)'/gm)].map(([, code]) => code);
  expect(documented.sort()).toEqual(known.sort());
});

test('docs/architecture.md knows every room of src', () => {
  const page = readMarkdown('docs/architecture.md');
  const rooms = readdirSync(path.join(root, 'src'), { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => `${name}/`);
  expect(rooms.filter(room => !page.includes(room))).toEqual([]);
});

/** Where the pages are for whoever reads them at npmjs.com or in node_modules. */
const ONLINE =
  /^https:\/\/(?:github\.com|raw\.githubusercontent\.com)\/limitkeeper\/limitkeeper\/(?:blob\/)?main\//;

const linksOf = (page: string): string[] =>
  [...readMarkdown(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);

test.each(PAGES)('the links of %s lead somewhere', page => {
  const anchorsOf = (markdown: string): string[] =>
    [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
  const dead = linksOf(page).filter(target => {
    const isOnline = ONLINE.test(target);
    if (/^https?:/.test(target) && !isOnline) return false;
    const [file = '', anchor] = target.replace(ONLINE, '').split('#');
    const full = path.join(root, isOnline ? '' : path.dirname(page), file);
    if (file !== '' && !existsSync(full)) return true;
    if (anchor === undefined) return false;
    return !anchorsOf(file === '' ? readMarkdown(page) : readFileSync(full, 'utf8')).includes(anchor);
  });
  expect(dead).toEqual([]);
});

test('the README has no relative links: at npmjs.com they lead nowhere', () => {
  expect(linksOf('README.md').filter(target => !target.startsWith('https:'))).toEqual([]);
});

test.each(PAGES.filter(page => page.startsWith('docs/')))(
  'the relative links of %s are in the tarball',
  page => {
    const strangers = linksOf(page)
      .filter(target => !/^(?:https?:|#)/.test(target))
      .map(target => path.posix.join('docs', target.split('#')[0]!))
      .filter(
        file =>
          !/^(?:docs\/(?!architecture|performance)[\w-]+\.md$|examples\/|CHANGELOG\.md$|SECURITY\.md$)/.test(
            file,
          ),
      );
    expect(strangers).toEqual([]);
  },
);

test('docs/README.md lists every page', () => {
  const listed = linksOf('docs/README.md').map(target => target.replace(ONLINE, '').replace(/^docs\//, ''));
  const pages = readdirSync(path.join(root, 'docs')).filter(
    name => name.endsWith('.md') && name !== 'README.md',
  );
  expect(pages.filter(name => !listed.includes(name))).toEqual([]);
});

test('package-lock.json names no registry', () => {
  expect(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved": "http/);
});

// npm ci says so of each package that wants a newer one, which on Node 20 is the first thing that a newcomer reads.
test('npm ci finds nothing wrong with the Node.js that the README asks for', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'limitkeeper-engines-'));
  try {
    for (const name of ['package.json', 'package-lock.json'])
      cpSync(path.join(root, name), path.join(folder, name));
    const { stderr } = await promisify(execFile)('npm', ['ci', '--dry-run', '--offline', '--no-audit'], {
      cwd: folder,
    });
    expect(stderr).not.toContain('EBADENGINE');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
