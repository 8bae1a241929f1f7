// A Redis script as one text: its `--@include other.lua` lines replaced by those files, each once, its `--@inline` lines by
// a piece of a function wherever one stands, and comments and indentation dropped (the text travels to the server whenever
// the server does not have it yet).
// The build, jest and tsx all import a .lua file through this.
const { readFileSync } = require('node:fs');
const { dirname, join } = require('node:path');

const PART = /^--@(include|inline)\s+(\S+)$/;

/** @param {string} file @returns {{ text: string, files: string[] }} `files`: all that the text was made of. */
function assemble(file) {
  const files = [];
  const read = (path, kind) => {
    if (files.includes(path)) {
      if (kind === 'include') return [];
    } else files.push(path);
    return readFileSync(path, 'utf8')
      .split('\n')
      .flatMap(line => {
        const code = line.trim();
        const [, nested, name] = PART.exec(code) ?? [];
        if (name !== undefined) return read(join(dirname(path), name), nested);
        return code === '' || code.startsWith('--') ? [] : [code];
      });
  };
  return { text: read(file, 'include').join('\n'), files };
}

module.exports = { assemble };
