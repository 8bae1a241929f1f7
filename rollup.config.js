import { rmSync } from 'node:fs';
import { dts } from 'rollup-plugin-dts';
import { chunkOf, lazyFiles } from './scripts/build/chunks.js';
import { commonJs } from './scripts/build/commonjs.js';
import { faces } from './scripts/build/faces.js';
import { sources } from './scripts/build/sources.js';
import { entries } from './scripts/entries.js';

rmSync('dist', { recursive: true, force: true });

const shared = {
  // dist mirrors src: src/presets/index.ts becomes dist/presets/index.cjs.
  input: Object.fromEntries(
    entries.map(({ source }) => [source.replace(/^src\//, '').replace(/\.ts$/, ''), source]),
  ),
  external: [/^node:/, 'express', 'ioredis'],
};

/** Not of ours: comments of zod's in places where rollup reads none, and a circle of two of its files. */
const onwarn = (warning, warn) => {
  const { code, loc, ids = [] } = warning;
  if ([loc?.file ?? '', ...ids].some(file => file.includes('/node_modules/zod/'))) return;
  // A file that waits until it is needed may need what needs it.
  if (code !== 'CIRCULAR_CHUNK') warn(warning);
};

export default [
  {
    ...shared,
    onwarn,
    plugins: [sources(), commonJs({ lazy: lazyFiles }), faces({ extension: '.js', of: '.cjs' })],
    treeshake: { moduleSideEffects: false },
    output: {
      dir: 'dist',
      format: 'es',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name].cjs',
      manualChunks: chunkOf,
      hoistTransitiveImports: false,
      minifyInternalExports: false,
    },
  },
  {
    ...shared,
    plugins: [dts({ tsconfig: 'tsconfig.build.json' }), faces({ extension: '.d.ts', of: '.d.cts' })],
    output: { dir: 'dist', entryFileNames: '[name].d.cts', chunkFileNames: '[name].d.cts' },
  },
];
