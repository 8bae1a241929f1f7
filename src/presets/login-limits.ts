import type { Request, Response } from 'express';
import { optionalFunction } from '../core/check.js';
import { typeError } from '../core/errors.js';
import { isPromise } from '../core/maybe-promise.js';
import { PROBLEM_DETAIL } from '../express/problem.js';
import type { RateLimitHandler, RequestOutcome, RuleOptions } from '../express/types.js';
import { byStatus, clientIp, rateLimit } from '../index.js';
import { foldEmail } from './email.js';
import { oncePerRequest } from './once-per-request.js';
import { changed, checkNames, namingOptions, settingsOf } from './preset-options.js';
import type { PresetFailureRule, PresetRule, PresetSettings } from './preset-options.js';

/** What a refused login says to people. It is the same for accounts that exist and for those that do not. */
export const TOO_MANY_LOGIN_ATTEMPTS = 'Too many login attempts. Please wait and try again.';

/** Options of {@link loginLimits}. */
export interface LoginLimitsOptions extends PresetSettings {
  /** `login.resolve.ip`, every request: 25 in 600 s for each address, then a block of 300 s. */
  readonly resolve?: PresetRule;
  /** `login.password.email_ip`, wrong passwords: 5 in 900 s for each e-mail and address, then a block of 900 s. */
  readonly password?: PresetFailureRule;
  /**
   * The e-mail (or user name) of a request. Default: `req.body.email`, so a body parser must run before. Anything but a
   * text counts as none.
   */
  readonly email?: (req: Request) => unknown;
}

/** The middleware for a login of one step, with those for the two steps of a longer one. */
export interface LoginLimitsHandler extends RateLimitHandler {
  /** `login.resolve.ip` alone: for the step that asks for the e-mail only. */
  readonly resolve: RateLimitHandler;
  /** `login.password.email_ip` alone: for the step that checks the password. */
  readonly password: RateLimitHandler;
}

const OWN_NAMES = ['resolve', 'password', 'email'] as const satisfies readonly (keyof LoginLimitsOptions)[];

/**
 * Limits for a login, to be mounted on the very route that checks the password, behind the body parser. Two rules, fixed
 * windows from the first request, decided together:
 *
 * | scope | counts | limit | then blocked |
 * |---|---|---|---|
 * | `login.resolve.ip` | every request, for each address | 25 in 600 s | 300 s |
 * | `login.password.email_ip` | failures, for each e-mail and address | 5 in 900 s | 900 s; a success forgives |
 *
 * What a request turned out to be is told by `outcome`, by default from its status: 2xx is a success, 4xx or a client that
 * hung up a failure. Failures are counted strictly: of a hundred parallel guesses five reach the handler. The fifth failure's
 * own answer announces the block.
 *
 * The e-mail counts without regard to case, surrounding space, accents and width. **Without an e-mail the address alone
 * counts**, and nothing is forgiven: an attacker could otherwise clear his address with an account of his own. For the same
 * reason a GET or HEAD never forgives, so that opening the login page between two guesses does not help.
 *
 * A refusal is `{"error":"rate_limit_exceeded"}`, or a problem whose `detail` is {@link TOO_MANY_LOGIN_ATTEMPTS}; the option
 * `message` shows in both. When the store fails this process counts on by itself (`failMode: 'local'`).
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
  const { email = emailInBody, outcome = byStatus, ipv6Prefix, resolve, password } = options;
  optionalFunction(email, 'email');
  optionalFunction(outcome, 'outcome');

  const emailOf = oncePerRequest(req => readEmail(email(req)));
  const keysByEmail = password?.keyFn === undefined;
  const mayForgive = (req: Request): boolean => !isSafe(req) && (!keysByEmail || emailOf(req) !== undefined);

  const settings = {
    failMode: 'local',
    [PROBLEM_DETAIL]: TOO_MANY_LOGIN_ATTEMPTS,
    ...settingsOf(options),
    outcome: (req: Request, res: Response): RequestOutcome => {
      const result = outcome(req, res);
      return result === 'success' && !mayForgive(req) ? 'ignore' : result;
    },
  } as const;
  const resolveRule = changed(
    { scope: 'login.resolve.ip', limit: 25, windowSec: 600, blockSec: 300, algorithm: 'fixed-window' },
    resolve,
    'resolve',
  );
  const passwordRule: RuleOptions = changed(
    {
      scope: 'login.password.email_ip',
      limit: 5,
      windowSec: 900,
      blockSec: 900,
      algorithm: 'fixed-window',
      keyFn: req => {
        const address = clientIp(req, ipv6Prefix);
        const mailbox = emailOf(req);
        return mailbox === undefined ? address : [mailbox, address];
      },
      count: 'failures',
      resetOnSuccess: true,
    },
    password,
    'password',
  );
  const both = namingOptions(['resolve', 'password'], () =>
    rateLimit({ ...settings, rules: [resolveRule, passwordRule] }),
  );
  return Object.assign(both, {
    resolve: rateLimit({ ...settings, rules: [resolveRule] }),
    password: rateLimit({ ...settings, rules: [passwordRule] }),
  });
}

function emailInBody(req: Request): unknown {
  return (req.body as { readonly email?: unknown } | null | undefined)?.email;
}

function readEmail(value: unknown): string | undefined {
  if (isPromise(value)) {
    throw typeError(
      'ERR_LIMITKEEPER_CALLBACK',
      'email must return the e-mail itself, got a promise. Read it in a middleware before this one, and return what that found.',
      { option: 'email' },
    );
  }
  return typeof value === 'string' ? foldEmail(value) : undefined;
}

/** RFC 9110, section 9.2.1. A page that was merely shown is no successful login. */
function isSafe({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}
