import type { Request } from 'express';
import type { RateLimitHandler } from '../express/types.js';
import type { PresetFailureRule, PresetRule, PresetSettings } from './preset-options.js';

/** Options of `loginLimits`. */
export interface LoginLimitsOptions extends PresetSettings {
  /** `login.resolve.ip`, every request: 25 in 600 s for each address, then a block of 300 s. */
  readonly resolve?: PresetRule;
  /** `login.password.email_ip`, wrong passwords: 5 in 900 s for each e-mail and address, then a block of 900 s. */
  readonly password?: PresetFailureRule;
  /**
   * `login.password.ip`, of `.password` alone: wrong passwords, for whatever account, 25 in 600 s for each address, then a
   * block of 300 s. No success forgives them. (A login of one step has `login.resolve.ip` in its place.)
   */
  readonly passwordIp?: PresetFailureRule;
  /**
   * `login.password.ip_day`, off by default: wrong passwords, for whatever account, 100 in 86,400 s for each address, then
   * a block of 86,400 s. No success forgives them. `true`, or numbers of your own. It stops whoever goes on slowly, and
   * costs all who share an address (an office, a school, a mobile network) a day without a login when one of them guesses.
   */
  readonly dailyIp?: boolean | PresetFailureRule;
  /**
   * `login.password.email`, off by default: wrong passwords for one e-mail from everywhere, 20 in 3,600 s, without a block.
   * No success forgives them. `true`, or numbers of your own. Anybody can use it up for anybody, so it needs an `onLimited`
   * that leaves a way in, such as a captcha; what it costs then is a captcha for whoever is being attacked.
   * Names that are no text (a list, an object, a number) count as one account.
   */
  readonly account?: boolean | PresetFailureRule;
  /**
   * The e-mail (or user name) of a request. Default: `req.body.email`, so a body parser must run before. Anything but a
   * text counts as none. Return what the account is looked up with: a success forgives only where that is in its folded
   * form (lower case, no accents, no blanks around it), for two spellings may be two accounts.
   */
  readonly email?: (req: Request) => unknown;
}

/** The middleware for a login of one step, with those for the two steps of a longer one. */
export interface LoginLimitsHandler extends RateLimitHandler {
  /** `login.resolve.ip` alone: for the step that asks for the e-mail only. */
  readonly resolve: RateLimitHandler;
  /** `login.password.ip` and `login.password.email_ip`: for the step that checks the password. */
  readonly password: RateLimitHandler;
}

export const OWN_NAMES = [
  'resolve',
  'password',
  'passwordIp',
  'dailyIp',
  'account',
  'email',
] as const satisfies readonly (keyof LoginLimitsOptions)[];
