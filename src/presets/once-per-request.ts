import type { Request } from 'express';

/**
 * Reads something of a request the first time it is asked for, and remembers it. A rule's `when`, its `keyFn` and the
 * outcome must speak of the same value, even where a handler has changed the request in between.
 */
export function oncePerRequest<T>(read: (req: Request) => T): (req: Request) => T {
  const known = new WeakMap<Request, { readonly value: T }>();
  return req => {
    let entry = known.get(req);
    if (entry === undefined) {
      entry = { value: read(req) };
      known.set(req, entry);
    }
    return entry.value;
  };
}
