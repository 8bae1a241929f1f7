// A Redis script as one text: its `--@include other.lua` lines replaced by those files, each once, and comments and
// indentation dropped (the text travels to the server whenever the server does not have it yet).
// The build, jest and tsx all import a .lua file through this.
const { readFileSync } = require('node:fs');
const { dirname, join } = require('node:path');

const INCLUDE = /^--@include\s+(\S+)\s*$/;

/** @param {string} file @returns {{ text: string, files: string[] }} `files`: all that the text was made of. */
function assemble(file) {
  const files = [];
  const read = path => {
    if (files.includes(path)) return [];
    files.push(path);
    return readFileSync(path, 'utf8')
      .split('\n')
      .flatMap(line => {
        const include = INCLUDE.exec(line);
        if (include) return read(join(dirname(path), include[1]));
        const code = line.trim();
        return code === '' || code.startsWith('--') ? [] : [code];
      });
  };
  return { text: read(file).join('\n'), files };
}

module.exports = { assemble };
