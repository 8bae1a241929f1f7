/**
 * A memory store answers with a value, every other store with a promise. Awaiting a value would cost a turn of the
 * microtask queue and, worse, let a response leave before its outcome is counted: so both are carried as they are.
 */
export type MaybePromise<T> = T | Promise<T>;

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** `next(value)`, now or when it is there. */
export function chain<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  // A user's thenable may answer nothing from its own `then`; a native promise goes through `resolve` as it is.
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value);
}

/** A promise of what `make` answers or throws: an async function without its turns of the microtask queue. */
export function promised<T>(make: () => MaybePromise<T>): Promise<T> {
  try {
    return Promise.resolve(make());
  } catch (thrown) {
    const error: Error = thrown as Error;
    return Promise.reject(error);
  }
}
