// Files that are imported as a text made of several: Redis scripts and the operators' page.
const lua = require('./lua.cjs');
const page = require('./page.cjs');

/** @param {string} file @returns {{ text: string, files: string[] }} `files`: all that the text was made of. */
const assemble = file => (file.endsWith('.html') ? page : lua).assemble(file);

module.exports = { assemble };
