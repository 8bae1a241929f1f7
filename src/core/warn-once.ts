import { emitWarning } from './warning.js';

/** Everything that the library warns of, each at most once in a process. The codes are stable. */
export type WarningCode = keyof typeof TEXTS;

const ADVICE =
  "Set it to the number of proxies in front of the app (app.set('trust proxy', 1)), or to their addresses";

const TEXTS = {
  LIMITKEEPER_TRUST_PROXY_TRUE: `the Express setting 'trust proxy' is true, so any client can forge its address with X-Forwarded-For and escape every limit. ${ADVICE}.`,
  LIMITKEEPER_TRUST_PROXY_OFF: `a request carried X-Forwarded-For while the Express setting 'trust proxy' is off, so behind a proxy all clients count as one. ${ADVICE}; without a proxy there is nothing to do.`,
  LIMITKEEPER_ONE_PRIVATE_ADDRESS: `all requests so far came from one private address, most likely a proxy, so all clients behind it count as one. Have the proxy send X-Forwarded-For, and check the Express setting 'trust proxy'. ${ADVICE}.`,
  LIMITKEEPER_MOUNTED_TWICE:
    'a request met the same rateLimit() instance twice; it was counted once. Mount it once, or create one instance with a scope of its own for each place.',
  LIMITKEEPER_MEMORY_STORE_PER_PROCESS:
    'limits are counted in the memory of this process, which seems to be one of several, and each of them admits the whole limit. Use a store that they share.',
  LIMITKEEPER_CREATED_IN_HANDLER:
    'rateLimit() is called inside a request handler, anew for every request. Call it once when the app starts, and mount what it returns.',
  LIMITKEEPER_HEADERS_SENT_EARLY:
    'the answer that used a limit up could not say so, because a middleware mounted behind rateLimit() (compression, a session) had sent its headers already. The count is right; mount that middleware before rateLimit().',
  LIMITKEEPER_LOGIN_WITHOUT_OUTCOME:
    "loginLimits() has let 20 logins pass, and none of their answers told a wrong password (4xx by default; redirects count as neither), so guesses are not counted. Tell it with the option outcome, which returns 'success' or 'failure'.",
  LIMITKEEPER_LOGIN_BEFORE_BODY_PARSER:
    'a login came with a body that nothing had parsed before loginLimits() (req.body is undefined), so accounts are not told apart: a few wrong passwords of some refuse all others at their address. Mount the body parser before it: app.post(path, express.json(), loginLimits(), login).',
  LIMITKEEPER_LOGIN_WITHOUT_EMAIL:
    'loginLimits() has found no e-mail in 20 logins, so accounts are not told apart: a few wrong passwords of some refuse all others at their address. It reads req.body.email; where the name is elsewhere, return it from the option email: req => req.body?.username.',
  LIMITKEEPER_NOTHING_RESERVED:
    'settle() was called for a request of which nothing is reserved, and did nothing. Set reserve: true, and the estimate as cost, on the rule that the handler settles, or charge with getRateLimit(req).scope(name).charge(n).',
  LIMITKEEPER_SCOPE_COUNTED_TWICE:
    'a request met two limiters with a rule of the same scope, which counted it twice, for one subject in one counter. Mount one of them, or give each rule a scope of its own.',
  LIMITKEEPER_LOOKS_LIKE_MILLISECONDS: 'an option in seconds has a value that looks like milliseconds.',
} as const;

/** Shared by the ESM and the CommonJS copy, so that two copies in a process do not warn twice. */
const KEY = Symbol.for('limitkeeper.warnings.v1');
const shared = globalThis as { [KEY]?: Set<string> };
const given = shared[KEY] ?? new Set<string>();
shared[KEY] = given;

/**
 * Warns once in a process; see {@link emitWarning}. It is switched off before the first request.
 */
export function warnOnce(code: WarningCode): void {
  if (isNew(code)) emitWarning(code, TEXTS[code]);
}

/**
 * Warns once in a process of each value of an option.
 *
 * @param value the option and its value
 * @param detail what of the program's own it is about; never anything of a request.
 */
export function warnOncePerValue(code: WarningCode, value: string, detail: string): void {
  if (isNew(`${code} ${value}`)) emitWarning(code, `${detail}: ${TEXTS[code]}`);
}

function isNew(what: string): boolean {
  if (given.has(what)) return false;
  given.add(what);
  return true;
}
