// For rollup: makes its ES chunks small CommonJS files.
import { posix } from 'node:path';
import { minify, transform as translate } from '@swc/core';
import { transform } from 'esbuild';

/** @param {{ lazy: string[] }} options `lazy`: files of dist that a `require` reads when they are first used. */
export function commonJs({ lazy }) {
  return {
    name: 'commonjs',
    async renderChunk(code, { fileName, isEntry, exports }) {
      const required = file => {
        const path = posix.relative(posix.dirname(fileName), file);
        return path.startsWith('.') ? path : `./${path}`;
      };
      const module = { type: 'commonjs', ignoreDynamic: true, lazy: lazy.map(required) };
      const common = await translate(withoutBareImports(code), {
        configFile: false,
        swcrc: false,
        jsc: { target: 'es2022' },
        module,
      });
      const small = await compact(common.code, isEntry);
      return { code: isEntry ? `${small}${exportList(exports)}\n` : small, map: null };
    },
  };
}

/** Rollup's way to keep the order of side effects, of which there are none. It would read what is to wait. */
const withoutBareImports = code => code.replace(/^import '[^']+';$/gm, '');

/**
 * Functions, classes and methods keep their names, and lines stay short: a stack trace says where it was, and Node, which
 * prints the line of an uncaught error, prints no hundred kilobytes.
 */
async function compact(code, isEntry) {
  const { code: renamed } = await minify(code, {
    module: false,
    ecma: 2022,
    compress: false,
    mangle: { toplevel: false, keep_fnames: true, keep_classnames: true },
  });
  // `enumerable: !0` would hide from Node that an entry exports something.
  const options = { minifySyntax: !isEntry, minifyWhitespace: true, lineLimit: 120, target: 'node20' };
  return (await transform(renamed, options)).code;
}

/** Never run; it tells Node, without running the file, what an ES module may import from it. */
const exportList = names => `0&&(module.exports={${names.map(name => `${name}:null`).join()}});`;
