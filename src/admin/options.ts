import type { Request } from 'express';
import { knownOptions, optionalFunction, plainObject } from '../core/validate.js';
import { received, typeError } from '../core/errors.js';
import { refuseRequest } from '../core/uncalled.js';
import type { Limiter } from '../core/limiter.js';

/** What a caller may do: read only, or all. */
export type Access = 'read' | 'all';

export interface AdminOptions {
  /** Limiters of `createLimiter`, or middlewares of `rateLimit`, whose rules are shown and whose subjects are handled. */
  readonly limiters: readonly (Limiter | { readonly limiter: Limiter })[];
  /**
   * Opens every route, as `X-Admin-Key` or `Authorization: Bearer`. At least 16 characters; several while one is replaced by
   * another. **None, or only empty ones: every route answers 403.**
   */
  readonly adminKey?: string | readonly string[] | undefined;
  /** Opens GET routes only. Default: none. */
  readonly readKey?: string | readonly string[] | undefined;
  /**
   * In place of keys, e.g. a look at the session of a single sign-on: strictly `true` opens all, `'read'` opens GET routes,
   * everything else refuses. An error goes to `next`.
   */
  readonly authorize?: ((req: Request) => boolean | 'read' | Promise<boolean | 'read'>) | undefined;
}

/** @throws TypeError with a code for an unknown option, or limiters that are none. */
export function checkOptions(options: AdminOptions): readonly Limiter[] {
  refuseRequest(
    plainObject(options, 'options'),
    "Call it: app.use('/ops/limits', adminRouter({ limiters, adminKey })).",
  );
  knownOptions(options, ['limiters', 'adminKey', 'readKey', 'authorize'], 'the options of adminRouter');
  optionalFunction(options.authorize, 'authorize');
  const { limiters } = options as { limiters: unknown };
  if (!Array.isArray(limiters) || limiters.length === 0) throw badLimiters(received(limiters));
  return [...new Set(limiters.map(limiterOf))];
}

/** By its shape and not its class: the limiter may come from the other copy (ESM, CommonJS) of the library. */
function limiterOf(given: unknown): Limiter {
  const limiter =
    (typeof given === 'function' || typeof given === 'object') && given !== null && 'limiter' in given
      ? given.limiter
      : given;
  if (typeof limiter === 'object' && limiter !== null && 'engine' in limiter && 'entries' in limiter) {
    return limiter as Limiter;
  }
  throw badLimiters(`a list with ${received(given)}`);
}

function badLimiters(came: string): TypeError {
  return typeError(
    'ERR_LIMITKEEPER_OPTION_TYPE',
    `limiters must be a list of at least one limiter of createLimiter or middleware of rateLimit, got ${came}.`,
    { option: 'limiters' },
  );
}
