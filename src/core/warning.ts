const DOCS = 'https://github.com/limitkeeper/limitkeeper/blob/main/docs/warnings.md';

/**
 * Prints one line through `process.emitWarning` (a listener of `process.on('warning')` gets it too).
 *
 * Whoever knows switches a code off: with the environment variable `LIMITKEEPER_NO_WARNINGS`, a list of codes or `all`, which
 * the program may set itself; or with Node's `--disable-warning=<code>`.
 *
 * @param code stable; `docs/warnings.md` has a section of that name
 */
export function emitWarning(code: string, text: string): void {
  if (isSwitchedOff(code)) return;
  process.emitWarning(`${text} See ${DOCS}#${code.toLowerCase()}`, { type: 'LimitkeeperWarning', code });
}

function isSwitchedOff(code: string): boolean {
  const list = (process.env['LIMITKEEPER_NO_WARNINGS'] ?? '').split(',').map(item => item.trim());
  return list.includes('all') || list.includes(code);
}
