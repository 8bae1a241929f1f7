import { createRequire } from 'node:module';
import { defineConfig } from 'tsup';
import { entries } from './scripts/entries.js';

// tsup makes one ES module of this file and what it imports, in which a bundled CommonJS module could require nothing.
const { assemble } = createRequire(import.meta.url)('./scripts/assemble.cjs') as {
  assemble: (file: string) => { text: string; files: string[] };
};

export default defineConfig({
  // dist mirrors src: src/presets/index.ts becomes dist/presets/index.js and .cjs
  entry: Object.fromEntries(
    entries.map(({ source }) => [source.replace(/^src\//, '').replace(/\.ts$/, ''), source]),
  ),
  format: ['esm', 'cjs'],
  target: 'node20',
  platform: 'node',
  tsconfig: 'tsconfig.build.json',
  // Entries share module state (the default store, what is known of a request), so shared code goes into chunks
  // instead of a copy per entry; in CommonJS too.
  splitting: true,
  // Rollup writes the CommonJS chunks. Without it sucrase would, and would turn every `?.` and `??` into a function call.
  treeshake: true,
  removeNodeProtocol: false,
  clean: true,
  sourcemap: false,
  esbuildPlugins: [
    {
      name: 'text',
      setup(build) {
        build.onLoad({ filter: /\.(?:lua|html)$/ }, ({ path }) => {
          const { text, files } = assemble(path);
          return { contents: text, loader: 'text', watchFiles: files };
        });
      },
    },
  ],
  dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
});
