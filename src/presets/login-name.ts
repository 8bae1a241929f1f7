import type { Request } from 'express';
import { typeError } from '../core/errors.js';
import { isPromise } from '../core/maybe-promise.js';
import { foldName } from './fold-name.js';

/** The name that a login came with. */
export interface LoginName {
  /** Under which it counts; `undefined` where something came that is no text, in which a database may yet find a name. */
  readonly folded: string | undefined;
  /**
   * It came in its folded form. Any other spelling may be an account of its own, in a database that tells them apart: a
   * login there says nothing of the guesses at the one that it is counted with.
   */
  readonly asFolded: boolean;
}

export function emailInBody(req: Request): unknown {
  return (req.body as { readonly email?: unknown } | null | undefined)?.email;
}

/** All that came as no text, as one account: a folded name has no capital, so none is spelled so. */
export const UNREADABLE_NAME = '[Unreadable]';

/**
 * @returns `undefined` where nothing came.
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
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') return { folded: undefined, asFolded: false };
  const folded = foldName(value);
  return folded === undefined ? undefined : { folded, asFolded: folded === value };
}
