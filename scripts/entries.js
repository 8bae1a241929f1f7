// The published entries, read from package.json `exports`: the only place where they are listed.
// Every entry mirrors its source: ./dist/stores/redis/index.js comes from src/stores/redis/index.ts.
import { readFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** @type {{ specifier: string, source: string }[]} e.g. { specifier: 'limitkeeper/presets', source: 'src/presets/index.ts' } */
export const entries = Object.entries(manifest.exports)
  .filter(([, target]) => typeof target === 'object')
  .map(([subpath, target]) => ({
    specifier: manifest.name + subpath.slice(1),
    source: target.import.default.replace(/^\.\/dist\//, 'src/').replace(/\.js$/, '.ts'),
  }));
