import type { Request, Response } from 'express';
import { warnOnce } from '../core/warn-once.js';
import type { RequestOutcome } from '../express/types.js';

/** So many logins in a row that say nothing are no coincidence any more. */
const ENOUGH = 20;

/**
 * Looks at the first logins for the mistakes that make a login's limits useless: no answer is told for a failure, and no
 * request shows an e-mail. One for each instance; once it has made up its mind a request costs it one comparison.
 */
export class LoginWatch {
  /** Requests left until it is suspicious; 0: the question is settled. */
  #unjudged = ENOUGH;
  #nameless = ENOUGH;
  #parsed = false;

  /** Call it with what a request turned out to be. */
  judged(req: Request, res: Response, outcome: RequestOutcome): void {
    if (this.#unjudged === 0) return;
    // Wrong passwords count, so all is well. Successes alone prove nothing: the failures may be what is ignored.
    if (outcome === 'failure') this.#unjudged = 0;
    // An application that fails has not looked at a password.
    if (outcome !== 'ignore' || isSafe(req) || res.statusCode >= 500) return;
    this.#unjudged -= 1;
    if (this.#unjudged === 0) warnOnce('LIMITKEEPER_LOGIN_WITHOUT_OUTCOME');
  }

  /** Call it once for each request, with whether it has an e-mail. */
  named(req: Request, found: boolean): void {
    if (this.#nameless === 0) return;
    if (found) {
      this.#nameless = 0;
      return;
    }
    if (isSafe(req)) return;
    if (req.body !== undefined) this.#parsed = true;
    else if (!this.#parsed && hasForm(req)) {
      this.#nameless = 0;
      warnOnce('LIMITKEEPER_LOGIN_BEFORE_BODY_PARSER');
      return;
    }
    this.#nameless -= 1;
    if (this.#nameless === 0) warnOnce('LIMITKEEPER_LOGIN_WITHOUT_EMAIL');
  }
}

/** RFC 9110, section 9.2.1. A page that was merely shown is no login. */
function isSafe({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

/** Those by which one logs in. By others a login is looked at or, as with `DELETE /session`, ended: both succeed without a password. */
export function mayLogIn({ method }: Request): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH';
}

/** Did it come with a body in which a login may be? A POST without one has nothing to parse. */
function hasForm({ headers }: Request): boolean {
  return /\b(?:json|x-www-form-urlencoded|form-data)\b/i.test(headers['content-type'] ?? '');
}
