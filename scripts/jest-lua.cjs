// Jest's twin of the build's loader: a .lua or .html file is a module whose default export is the assembled text.
const { createHash } = require('node:crypto');
const { assemble } = require('./assemble.cjs');

module.exports = {
  process: (_, file) => ({
    code: `Object.defineProperty(exports, '__esModule', { value: true });\nexports.default = ${JSON.stringify(assemble(file).text)};`,
  }),
  // The key must change with every included file.
  getCacheKey: (_, file) => createHash('sha1').update(assemble(file).text).digest('hex'),
};
