import type { Request, Response } from 'express';
import { optionalFunction } from '../core/validate.js';
import { received, typeError } from '../core/errors.js';
import type { RateLimitHandler, RequestOutcome, RuleOptions } from '../express/types.js';
import { clientIp, rateLimit } from '../index.js';
import { bearerToken } from './bearer.js';
import { oncePerRequest } from './once-per-request.js';
import { changed, checkNames, namingOptions, settingsOf } from './preset-options.js';
import type { PresetFailureRule, PresetRule, PresetSettings } from './preset-options.js';

/** Options of {@link apiLimits}. */
export interface ApiLimitsOptions extends PresetSettings {
  /** `api.token_ip`, requests with a token: 300 in 60 s for each token and address, then a block of 120 s. */
  readonly tokenIp?: PresetRule;
  /** `api.ip`, requests without one: 120 in 60 s for each address, then a block of 120 s. */
  readonly ip?: PresetRule;
  /** `api.invalid_token.ip`, requests whose token fails: 120 in 60 s for each address, then a block of 120 s. */
  readonly invalidToken?: PresetFailureRule;
  /** The token of a request, `undefined` where it has none. Default: that of `Authorization: Bearer`. */
  readonly token?: (req: Request) => string | null | undefined;
  /**
   * The part of a token that names its owner, e.g. `token => token.split(':')[0]` for tokens of the form
   * `selector:verifier`. Where it answers `undefined` or `''`, and by default, the whole token counts: only its hash is
   * kept anyway, and there is no part that means the same in every kind of token (the first part of a JWT is the same for
   * everybody). Use it where one valid token can be spelled in several ways, too.
   */
  readonly selector?: (token: string, req: Request) => string | null | undefined;
}

const OWN_NAMES = [
  'tokenIp',
  'ip',
  'invalidToken',
  'token',
  'selector',
] as const satisfies readonly (keyof ApiLimitsOptions)[];

/**
 * Limits for an API, to be mounted **before** authentication, so that a flood costs no look-up of tokens. Three rules,
 * fixed windows from the first request, decided together:
 *
 * | scope | applies | counts | limit | then blocked |
 * |---|---|---|---|---|
 * | `api.token_ip` | with a token | every request, for each token and address | 300 in 60 s | 120 s |
 * | `api.invalid_token.ip` | with a token | failures, for each address | 120 in 60 s | 120 s |
 * | `api.ip` | without one | every request, for each address | 120 in 60 s | 120 s |
 *
 * An invented token has a fresh quota, so whoever invents one for each request meets the second rule alone. It counts the
 * answer 401, and a client that hung up before an answer began, who would otherwise never be counted (`outcome` decides
 * otherwise). It therefore needs an application that answers 401 to an unknown token: do not mount the preset on routes that
 * ignore the token. It looks first and charges when the answer is known (`strict: false`): parallel requests of good clients never
 * wait for each other, and requests under way when the limit is reached are let finish.
 *
 * @example
 * app.use('/api', apiLimits(), authenticate, routes);
 * app.use('/api', apiLimits({ failMode: 'closed', ip: { limit: 60 } }), authenticate, routes);
 * @throws TypeError or RangeError with a stable `code` for every mistake in the options.
 */
export function apiLimits(options: ApiLimitsOptions = {}): RateLimitHandler {
  checkNames(options, OWN_NAMES, 'apiLimits');
  const { token = bearerToken, selector, ipv6Prefix, tokenIp, ip, invalidToken } = options;
  optionalFunction(token, 'token');
  optionalFunction(selector, 'selector');

  const tokenOf = oncePerRequest(req => textOf(token(req), 'token'));
  const hasToken = (req: Request): boolean => tokenOf(req) !== undefined;
  const ownerOf = (req: Request): string => {
    // Only asked for where there is a token.
    const whole = tokenOf(req) ?? '';
    return textOf(selector?.(whole, req), 'selector') ?? whole;
  };

  const numbers = { windowSec: 60, blockSec: 120, algorithm: 'fixed-window' } as const;
  const rules: RuleOptions[] = [
    changed(
      {
        ...numbers,
        scope: 'api.token_ip',
        limit: 300,
        when: hasToken,
        keyFn: req => [ownerOf(req), clientIp(req, ipv6Prefix)],
      },
      tokenIp,
      'tokenIp',
    ),
    changed({ ...numbers, scope: 'api.ip', limit: 120, when: req => !hasToken(req) }, ip, 'ip'),
    changed(
      {
        ...numbers,
        scope: 'api.invalid_token.ip',
        limit: 120,
        when: hasToken,
        count: 'failures',
        strict: false,
      },
      invalidToken,
      'invalidToken',
    ),
  ];
  return namingOptions(['tokenIp', 'ip', 'invalidToken'], () =>
    rateLimit({ outcome: tokenOutcome, ...settingsOf(options), rules }),
  );
}

/**
 * The default outcome: has the token failed? Neither 403 nor 404 says anything of it. Who hangs up while their token is being
 * looked up is not asked about, and counts.
 */
function tokenOutcome(_req: Request, res: Response): RequestOutcome {
  return res.statusCode === 401 ? 'failure' : 'ignore';
}

function textOf(value: unknown, option: string): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw typeError(
    'ERR_LIMITKEEPER_CALLBACK',
    // Never what came: it may hold the token.
    `${option} must return a string, or undefined where there is none, got ${typeof value === 'object' ? received(value) : `a ${typeof value}`}.`,
    { option },
  );
}
