import { knownOptions, plainObject } from '../core/validate.js';
import { refuseRequest } from '../core/uncalled.js';
import type { LimiterSettings } from '../core/limiter-options.js';

export interface RateServiceOptions extends Omit<LimiterSettings, 'ipv6Prefix'> {
  /** Requests of one user at one endpoint in a window, 0 (refuse all) to 1,000. Default 10. */
  readonly limit?: number;
  /** Seconds. Default 60. */
  readonly windowSec?: number;
  /**
   * Opens `DELETE /rate/reset`, as `X-Admin-Key` or `Authorization: Bearer`. At least 16 characters. **None, or only empty
   * ones: resets answer 403.**
   */
  readonly adminKey?: string | readonly string[] | undefined;
  /**
   * Asked of every check and status, as `X-Service-Key` or `Authorization: Bearer`. `undefined`: none is asked for, and
   * `X-User-Id` is taken on trust; an empty one opens for nobody.
   */
  readonly serviceKey?: string | readonly string[] | undefined;
}

const OPTIONS = [
  'store',
  'limit',
  'windowSec',
  'adminKey',
  'serviceKey',
  'failMode',
  'storeTimeoutMs',
  'hashSecret',
] as const satisfies readonly (keyof RateServiceOptions)[];

/** @throws TypeError with a code for an unknown option. */
export function checkOptions(options: RateServiceOptions): void {
  const given = plainObject(options, 'the options of rateRouter');
  refuseRequest(given, 'Call it: app.use(rateRouter({ … })).');
  knownOptions(given, OPTIONS, 'the options of rateRouter');
}
