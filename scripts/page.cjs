// The operators' page as one text: in `<!-- style -->` goes style.css, in `<!-- script -->` the bundle of client/main.ts.
// The build, jest and tsx all import the .html file through this.
const { readFileSync } = require('node:fs');
const { dirname, join, resolve } = require('node:path');

/** @param {string} file @returns {{ text: string, files: string[] }} `files`: all that the text was made of. */
function assemble(file) {
  const { buildSync } = require('esbuild');
  const bundle = (entry, options) => {
    const { outputFiles, metafile } = buildSync({
      entryPoints: [join(dirname(file), entry)],
      bundle: true,
      minify: true,
      write: false,
      metafile: true,
      charset: 'utf8',
      legalComments: 'none',
      target: ['es2022', 'chrome110', 'firefox115', 'safari16.4'],
      logLevel: 'silent',
      ...options,
    });
    const text = outputFiles[0].text.trim();
    if (/<\/(?:script|style)/i.test(text)) throw new Error(`${entry} must not contain an end tag.`);
    return { text, files: Object.keys(metafile.inputs).map(input => resolve(input)) };
  };
  const style = bundle('style.css', {});
  const script = bundle('client/main.ts', { format: 'iife' });
  const text = readFileSync(file, 'utf8')
    .replace('<!-- style -->', () => `<style>${style.text}</style>`)
    .replace('<!-- script -->', () => `<script>${script.text}</script>`);
  return { text, files: [file, ...style.files, ...script.files] };
}

module.exports = { assemble };
