import type { Request } from 'express';
import { typeError } from '../core/errors.js';
import type { RuleOptions } from '../express/types.js';
import { clientIp } from '../index.js';
import { UNREADABLE_NAME } from './login-name.js';
import type { LoginName } from './login-name.js';
import type { LoginLimitsOptions } from './login-options.js';
import { changed, optionalRule } from './preset-options.js';

/** A rule with the option that changes it. */
export interface NamedRule {
  readonly option: keyof LoginLimitsOptions;
  readonly rule: RuleOptions;
}

/** The rules of each way in, in order. */
export interface LoginRules {
  readonly oneStep: readonly NamedRule[];
  readonly resolve: readonly NamedRule[];
  readonly password: readonly NamedRule[];
}

const window = { algorithm: 'fixed-window' } as const;
const failures = { ...window, count: 'failures' } as const;

export function loginRules(
  options: LoginLimitsOptions,
  nameOf: (req: Request) => LoginName | undefined,
): LoginRules {
  const resolve: NamedRule = {
    option: 'resolve',
    rule: changed(
      { ...window, scope: 'login.resolve.ip', limit: 25, windowSec: 600, blockSec: 300 },
      options.resolve,
      'resolve',
    ),
  };
  const passwordIp: NamedRule = {
    option: 'passwordIp',
    rule: changed(
      { ...failures, scope: 'login.password.ip', limit: 25, windowSec: 600, blockSec: 300 },
      options.passwordIp,
      'passwordIp',
    ),
  };
  const keyFn = (req: Request): string | [string, string] => {
    const address = clientIp(req, options.ipv6Prefix);
    const mailbox = nameOf(req)?.folded;
    return mailbox === undefined ? address : [mailbox, address];
  };
  const password: NamedRule = {
    option: 'password',
    rule: changed(
      {
        ...failures,
        scope: 'login.password.email_ip',
        limit: 5,
        windowSec: 900,
        blockSec: 900,
        keyFn,
        resetOnSuccess: true,
      },
      options.password,
      'password',
    ),
  };
  const wider = [dailyIp(options), account(options, nameOf)].filter(rule => rule !== undefined);
  return {
    oneStep: [resolve, password, ...wider],
    resolve: [resolve],
    password: [passwordIp, password, ...wider],
  };
}

function dailyIp({ dailyIp: chosen }: LoginLimitsOptions): NamedRule | undefined {
  const rule = optionalRule(
    { ...failures, scope: 'login.password.ip_day', limit: 100, windowSec: 86_400, blockSec: 86_400 },
    chosen,
    'dailyIp',
  );
  return rule && { option: 'dailyIp', rule };
}

function account(
  { account: chosen, onLimited }: LoginLimitsOptions,
  nameOf: (req: Request) => LoginName | undefined,
): NamedRule | undefined {
  const keysByEmail = typeof chosen !== 'object' || chosen.keyFn === undefined;
  const rule = optionalRule(
    {
      ...failures,
      scope: 'login.password.email',
      limit: 20,
      windowSec: 3600,
      keyFn: req => nameOf(req)?.folded ?? UNREADABLE_NAME,
      // A request that names no account is none of it. One whose name is no text does: drivers and queries read one out of
      // lists, numbers and objects.
      ...(keysByEmail ? { when: (req: Request) => nameOf(req) !== undefined } : {}),
    },
    chosen,
    'account',
  );
  if (rule === undefined) return undefined;
  if (onLimited === undefined && (rule.mode ?? 'enforce') === 'enforce') {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      'account needs onLimited, got none: where the rule merely refuses, anybody can lock anybody out with wrong passwords. ' +
        'Let onLimited ask for a captcha, and call next() when it is solved.',
      { option: 'onLimited' },
    );
  }
  return { option: 'account', rule };
}
