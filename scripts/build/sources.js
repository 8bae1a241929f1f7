// For rollup: TypeScript, and a Redis script or the operators' page as its text.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { transform } from 'esbuild';
import { assemble } from '../assemble.cjs';

const ZOD = dirname(createRequire(import.meta.url).resolve('zod/package.json'));

export function sources() {
  return {
    name: 'sources',
    resolveId(specifier, importer) {
      if (specifier === 'zod/mini') return join(ZOD, 'mini/index.js');
      if (importer === undefined || !specifier.startsWith('.')) return null;
      const path = join(dirname(importer), specifier);
      const source = path.replace(/\.js$/, '.ts');
      return existsSync(source) ? source : path;
    },
    load(path) {
      if (!/\.(?:lua|html)$/.test(path)) return null;
      const { text, files } = assemble(path);
      for (const file of files) this.addWatchFile(file);
      return `export default ${JSON.stringify(text)};`;
    },
    async transform(code, path) {
      if (!path.endsWith('.ts')) return null;
      const { code: js } = await transform(code, { loader: 'ts', target: 'node20' });
      return { code: js, map: null };
    },
  };
}
