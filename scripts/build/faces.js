// For rollup: what `import` reads, beside each entry's CommonJS file. It only passes on what that one exports: with a second
// copy of the code for ES modules a program that has both would have two of everything that is counted in memory.

/** @param {{ extension: string, of: string }} options e.g. { extension: '.js', of: '.cjs' } */
export function faces({ extension, of }) {
  return {
    name: 'faces',
    generateBundle(_, bundle) {
      for (const { fileName, isEntry, exports, name } of Object.values(bundle)) {
        if (!isEntry) continue;
        this.emitFile({
          type: 'asset',
          fileName: fileName.replace(of, extension),
          source: face(exports, `./${name.replace(/.*\//, '')}${of.replace('.d.cts', '.cjs')}`),
        });
      }
    },
  };
}

/** The `default` of a CommonJS file is all of it to Node, and the export of that name to some bundlers: never ask for it. */
const DEFAULT = 'rateLimit as default';

function face(exports, file) {
  const names = exports.map(name => (name === 'default' ? DEFAULT : name));
  return `export { ${names.join(', ')} } from '${file}';\n`;
}
