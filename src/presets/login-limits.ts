import type { Request, Response } from 'express';
import { optionalFunction } from '../core/validate.js';
import { PROBLEM_DETAIL } from '../express/problem.js';
import type { RateLimitHandler, RequestOutcome } from '../express/types.js';
import { byStatus, rateLimit } from '../index.js';
import { emailInBody, readName } from './login-name.js';
import { OWN_NAMES } from './login-options.js';
import type { LoginLimitsHandler, LoginLimitsOptions } from './login-options.js';
import { loginRules } from './login-rules.js';
import type { NamedRule } from './login-rules.js';
import { LoginWatch, mayLogIn } from './login-watch.js';
import { oncePerRequest } from './once-per-request.js';
import { checkNames, namingOptions, settingsOf } from './preset-options.js';

/** What a refused login says to people. It is the same for accounts that exist and for those that do not. */
export const TOO_MANY_LOGIN_ATTEMPTS = 'Too many login attempts. Please wait and try again.';

/**
 * Limits for a login, to be mounted on the very route that checks the password, behind the body parser. Fixed windows from
 * the first request, decided together:
 *
 * | scope | in | counts | limit | then blocked |
 * |---|---|---|---|---|
 * | `login.resolve.ip` | one step, `.resolve` | every request, for each address | 25 in 600 s | 300 s |
 * | `login.password.email_ip` | one step, `.password` | failures, for each e-mail and address | 5 in 900 s | 900 s; a success forgives |
 * | `login.password.ip` | `.password` | failures, for each address | 25 in 600 s | 300 s |
 * | `login.password.ip_day` | option `dailyIp` | failures, for each address | 100 in a day | a day |
 * | `login.password.email` | option `account` | failures, for each e-mail | 20 in 3,600 s | no block, `onLimited` |
 *
 * What a request turned out to be is told by `outcome`, by default from its status: 2xx is a success, 4xx or a client that
 * hung up a failure. Failures are counted strictly: of a hundred parallel guesses five reach the handler. The fifth failure's
 * own answer announces the block.
 *
 * The e-mail counts without regard to case, surrounding space, accents, width and control characters; a success forgives
 * only where it came without any of these, since `Admin` may be another account than `admin`. **Without an e-mail the
 * address alone counts**, and nothing is forgiven: an attacker could otherwise clear their address with an account of their
 * own. For the same reason only POST, PUT and PATCH forgive, so that opening the login page, or logging out, between two guesses
 * does not help.
 *
 * A refusal is `{"error":"rate_limit_exceeded"}`, or a problem whose `detail` is {@link TOO_MANY_LOGIN_ATTEMPTS}; the option
 * `message` shows in both. When the store fails this process counts on by itself (`failMode: 'local'`). A login whose answers
 * tell nothing, or that shows no e-mail, is warned of once.
 *
 * @example
 * app.post('/login', express.json(), loginLimits(), login);
 *
 * // two steps, which count together with it
 * const limits = loginLimits();
 * app.post('/login/email', express.json(), limits.resolve, findAccount);
 * app.post('/login/password', express.json(), limits.password, checkPassword);
 * @throws TypeError or RangeError with a stable `code` for every mistake in the options.
 */
export function loginLimits(options: LoginLimitsOptions = {}): LoginLimitsHandler {
  checkNames(options, OWN_NAMES, 'loginLimits');
  const { email = emailInBody, outcome = byStatus } = options;
  optionalFunction(email, 'email');
  optionalFunction(outcome, 'outcome');

  const watch = new LoginWatch();
  const nameOf = oncePerRequest(req => {
    const name = readName(email(req));
    watch.named(req, name?.folded !== undefined);
    return name;
  });
  const keysByEmail = options.password?.keyFn === undefined;
  const mayForgive = (req: Request): boolean =>
    mayLogIn(req) && (!keysByEmail || nameOf(req)?.asFolded === true);

  const settings = {
    failMode: 'local',
    [PROBLEM_DETAIL]: TOO_MANY_LOGIN_ATTEMPTS,
    ...settingsOf(options),
    outcome: (req: Request, res: Response): RequestOutcome => {
      const result = outcome(req, res);
      watch.judged(req, res, result);
      // Nothing here counts successes, so that one which forgives nothing is as good as none.
      return result === 'success' && !mayForgive(req) ? 'ignore' : result;
    },
  } as const;
  const rules = loginRules(options, nameOf);
  const made = (list: readonly NamedRule[]): RateLimitHandler =>
    namingOptions(
      list.map(({ option }) => option),
      () => rateLimit({ ...settings, rules: list.map(({ rule }) => rule) }),
    );
  return Object.assign(made(rules.oneStep), {
    resolve: made(rules.resolve),
    password: made(rules.password),
  });
}
