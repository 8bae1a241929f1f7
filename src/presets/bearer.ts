import type { Request } from 'express';

/**
 * The token of `Authorization: Bearer <token>` (RFC 6750; the scheme in any case), `undefined` where there is none.
 *
 * It ends at the first space: an application that takes the second word of the header accepts one token with anything
 * behind it, and each such spelling would otherwise be counted apart.
 */
export function bearerToken(req: Pick<Request, 'headers'>): string | undefined {
  return /^\s*bearer\s+(\S+)/i.exec(req.headers.authorization ?? '')?.[1];
}
