import type { Request } from 'express';
import { typeError } from '../core/errors.js';
import { isPromise } from '../core/maybe-promise.js';
import { foldName } from './fold-name.js';

/** The name that a login came with. */
export interface LoginName {
  /** Under which it counts. */
  readonly folded: string;
  /**
   * It came in its folded form. Any other spelling may be an account of its own, in a database that tells them apart: a
   * login there says nothing of the guesses at the one that it is counted with.
   */
  readonly asFolded: boolean;
}

export function emailInBody(req: Request): unknown {
  return (req.body as { readonly email?: unknown } | null | undefined)?.email;
}

/**
 * @returns `undefined` where there is no text.
 * @throws TypeError `ERR_LIMITKEEPER_CALLBACK` for a promise.
 */
export function readName(value: unknown): LoginName | undefined {
  if (isPromise(value)) {
    throw typeError(
      'ERR_LIMITKEEPER_CALLBACK',
      'email must return the e-mail itself, got a promise. Read it in a middleware before this one, and return what that found.',
      { option: 'email' },
    );
  }
  if (typeof value !== 'string') return undefined;
  const folded = foldName(value);
  return folded === undefined ? undefined : { folded, asFolded: folded === value };
}
