import { emitWarning } from './warning.js';
import { TEXTS } from './warning-texts.js';

/** Everything that the library warns of, each at most once in a process. The codes are stable. */
export type WarningCode = keyof typeof TEXTS;

/** Shared by all copies of the library in a process, so that two of them do not warn twice. */
const KEY = Symbol.for('limitkeeper.warnings.v1');
const shared = globalThis as { [KEY]?: Set<string> };
const given = shared[KEY] ?? new Set<string>();
shared[KEY] = given;

/**
 * Warns once in a process; see {@link emitWarning}. It is switched off before the first request.
 */
export function warnOnce(code: WarningCode): void {
  if (isNew(code)) emitWarning(code, textOf(code));
}

/**
 * Warns once in a process of each value of an option.
 *
 * @param value the option and its value
 * @param detail what of the program's own it is about; never anything of a request.
 */
export function warnOncePerValue(code: WarningCode, value: string, detail: string): void {
  if (isNew(`${code} ${value}`)) emitWarning(code, `${detail}: ${textOf(code)}`);
}

function isNew(what: string): boolean {
  if (given.has(what)) return false;
  given.add(what);
  return true;
}

/** The texts are in a file that is read with the first warning. A request may be waiting, and must not pay where that fails. */
function textOf(code: WarningCode): string {
  try {
    return TEXTS[code];
  } catch {
    return 'the text of this warning could not be read.';
  }
}
