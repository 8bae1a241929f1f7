/** One line of a log; what a server quotes of a command may be as long as the command. */
const LONGEST = 300;
/** No more of a text is looked at. */
const MOST_READ = 4000;
/** An error may name one that caused it, and that one another: a client's error hides at most so deep. */
const DEEPEST = 3;

const WITHHELD = '***';
/** What texts of clients and servers may hold and no log may: in the order in which they are taken out. */
const SECRETS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  // Redis quotes the arguments of a command that it does not know. Of AUTH that is the password.
  [/(with args beginning with:).*/is, `$1 ${WITHHELD}`],
  // redis://user:password@host; the last @ ends them, whatever the password holds.
  [/\b([a-z][a-z\d+.-]{0,30}:\/\/)[^\s/]*@/gi, `$1${WITHHELD}@`],
  [/\b(pass(?:word|wd)?|pwd|secret|token|api-?key|authorization)(["']?\s*[=:]\s*)\S+/gi, `$1$2${WITHHELD}`],
  // Hashes of subjects, tokens.
  [/[\w+/-]{40,}={0,2}/g, WITHHELD],
];

/**
 * What an error of a store says, for a log: with what caused it, without passwords and hashes of subjects, in one line.
 * It never throws, whatever the error is.
 */
export function errorText(error: unknown): string {
  try {
    const text = begun(textOf(error, DEEPEST)).replace(/\s+/g, ' ').trim();
    const safe = SECRETS.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), text);
    return safe.length > LONGEST ? `${safe.slice(0, LONGEST)}…` : safe;
  } catch {
    return 'an error that cannot be read';
  }
}

/** The first words of a text that is long. Half a word could be half a secret, which is not known for one. */
function begun(text: string): string {
  if (text.length <= MOST_READ) return text;
  const some = text.slice(0, MOST_READ);
  return some.slice(0, some.lastIndexOf(' ') + 1);
}

/** Told by its shape and not by its class: under Jest, say, the errors of node are of another realm. */
interface ErrorLike {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly cause?: unknown;
  /** Of an AggregateError, which has no message of its own where a host name has several addresses. */
  readonly errors?: unknown;
  /** Of a cluster client of ioredis, whose own message says only that it has found no node. */
  readonly lastNodeError?: unknown;
}

function textOf(error: unknown, depth: number): string {
  if (typeof error !== 'object' || error === null) return 'it threw something that is no Error';
  const { message, code, name, cause, errors, lastNodeError } = error as ErrorLike;
  const own = [message, code, name].find(text => typeof text === 'string' && text !== '') as
    string | undefined;
  const behind = [cause, lastNodeError, ...(Array.isArray(errors) ? (errors as unknown[]).slice(0, 2) : [])];
  // Errors of ours begin with the package's name.
  const texts = [(own ?? 'it threw something that is no Error').replace(/^limitkeeper: /, '')];
  for (const other of depth > 0 ? behind : []) {
    if (typeof other !== 'object' || other === null) continue;
    const text = textOf(other, depth - 1);
    if (!texts.some(known => known.includes(text))) texts.push(text);
  }
  return texts.map((text, i) => (i < texts.length - 1 ? text.replace(/[.:]\s*$/, '') : text)).join(': ');
}
