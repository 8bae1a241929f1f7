// What rollup leaves undone in dist.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

// Express is an optional peer: a program without it has to compile with our types all the same, even where its compiler
// looks into them (`skipLibCheck: false`). What cannot be found is `any` then.
const EXPRESS = /^(?=import (?:.* from )?'express';$)/gm;
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (!/\.d\.c?ts$/.test(name)) continue;
  const file = join(dist, name);
  const text = readFileSync(file, 'utf8');
  if (EXPRESS.test(text))
    writeFileSync(file, text.replaceAll(EXPRESS, '// @ts-ignore Express is optional.\n'));
  EXPRESS.lastIndex = 0;
}

// The routers have zod with them, whose licence asks to be passed on.
const zod = join(root, 'node_modules/zod');
const { version } = JSON.parse(readFileSync(join(zod, 'package.json'), 'utf8'));
const licence = readFileSync(join(zod, 'LICENSE'), 'utf8').trim();
writeFileSync(
  join(dist, 'THIRD-PARTY.md'),
  `# Third-party software\n\nThe files of \`limitkeeper/admin\` and \`limitkeeper/service\` contain parts of zod ${version}:\n\n${licence}\n`,
);
