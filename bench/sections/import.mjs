// What `require` and `import` of each package take in a fresh process, the fastest of many, and what else they load; and how
// much travels.
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompressSync } from 'node:zlib';
import { dist } from '../limitkeeper.mjs';
import { target } from '../report/target.mjs';

const here = fileURLToPath(new URL('..', import.meta.url));
const PEERS = [
  'rate-limiter-flexible',
  'express-rate-limit',
  '@joint-ops/hitlimit',
  '@fastify/rate-limit',
  'express',
];
/** Those that can only be imported. */
const MODULES_ONLY = ['@joint-ops/hitlimit'];

const REQUIRE = `
  const start = process.hrtime.bigint();
  require(process.argv[1]);
  const ms = Number(process.hrtime.bigint() - start) / 1e6;
  console.log(JSON.stringify({ ms, files: Object.keys(require.cache) }));`;
const IMPORT = `
  const start = process.hrtime.bigint();
  await import(process.argv[1]);
  console.log(JSON.stringify({ ms: Number(process.hrtime.bigint() - start) / 1e6 }));`;

const run = promisify(execFile);

async function load(code, type, specifier) {
  const args = [`--input-type=${type}`, '--eval', code, specifier];
  const { stdout } = await run(process.execPath, args, { cwd: here });
  return JSON.parse(stdout);
}

async function fastest(times, code, type, specifier) {
  const loads = [];
  for (let i = 0; i < times; i += 1) loads.push(await load(code, type, specifier));
  return loads.reduce((best, one) => (one.ms < best.ms ? one : best));
}

const packageOf = file => /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(file)?.[1];

export default async function importSection({ quick }) {
  const times = quick ? 7 : 25;
  const entry = path.join(dist, 'index.cjs');
  const subjects = [
    {
      name: 'limitkeeper',
      own: true,
      common: entry,
      module: pathToFileURL(path.join(dist, 'index.js')).href,
    },
    ...PEERS.map(name => ({
      name,
      common: MODULES_ONLY.includes(name) ? undefined : name,
      module: name,
    })),
  ];
  const rows = [];
  for (const { name, own, common, module } of subjects) {
    const row = { name, own, import: (await fastest(times, IMPORT, 'module', module)).ms };
    rows.push(row);
    if (common === undefined) continue;
    const { ms, files } = await fastest(times, REQUIRE, 'commonjs', common);
    const packages = new Set(files.map(packageOf).filter(found => found !== undefined && found !== name));
    Object.assign(row, { require: ms, packages: packages.size });
    if (!own) continue;
    row.brotli = files.reduce((sum, file) => sum + brotliCompressSync(readFileSync(file)).length, 0) / 1000;
    row.targets = [
      target(ms, 10, 'ms require'),
      target(packages.size, 0, 'packages'),
      target(row.brotli, 12, 'kB brotli'),
      ...tarball(),
    ];
  }
  return {
    title: 'Loading',
    note: `Fresh processes, the fastest of ${times}. kB: what \`require\` reads of the package's own, each file compressed.`,
    columns: [
      { key: 'require', label: 'require, ms', digits: 1 },
      { key: 'import', label: 'import, ms', digits: 1 },
      { key: 'packages', label: 'other packages', digits: 0 },
      { key: 'brotli', label: 'kB brotli', digits: 1 },
    ],
    rows,
  };
}

/** Of this checkout only: another build is no package. */
function tarball() {
  const root = path.dirname(dist);
  try {
    const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
    const [{ size }] = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }));
    return [target(size / 1000, 200, 'kB tarball')];
  } catch {
    return [];
  }
}
