import { received, typeError } from '../core/errors.js';

/** What `next` takes for an error: whatever is truthy, but for the words with which Express leaves a route or a router. */
export function isFailure(arg: unknown): boolean {
  return Boolean(arg) && arg !== 'route' && arg !== 'router';
}

/** A callback may throw anything, also what `next` would take for leave to go on without a limit. */
export function asFailure(error: unknown): unknown {
  if (isFailure(error)) return error;
  return typeError(
    'ERR_LIMITKEEPER_CALLBACK',
    `a callback must throw or reject with an Error, got ${received(error)}.`,
    { cause: error },
  );
}
