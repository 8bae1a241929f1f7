// Jest's twin of the build's text loader: a .lua file is a module whose default export is its text.
module.exports = {
  process: text => ({
    code: `Object.defineProperty(exports, '__esModule', { value: true });\nexports.default = ${JSON.stringify(text)};`,
  }),
};
