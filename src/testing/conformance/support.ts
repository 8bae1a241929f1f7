import type { Store } from '../../core/store.js';
import type { FakeClock } from '../fake-clock.js';

/** What a store can do beside deciding. What is left out has the value named here. */
export interface ConformanceSupport {
  /**
   * It tells time by the `clock` that its factory is given. Default true. Without one, as with a server whose time is its
   * own, promises about long windows are left out, and short ones are waited for: some seconds in all.
   */
  readonly clock?: boolean;
  /** It lists standing blocks with `blocked()`. Default true. */
  readonly blocked?: boolean;
  /** `blocked({ part })` finds them by a part of the subject. Default: as `blocked`. */
  readonly parts?: boolean;
  /** Two stores made with the same `name` count together, as two processes do. Default false. */
  readonly shared?: boolean;
}

/** How a store is to be made. */
export interface ConformanceStoreOptions {
  /** The store's time; `undefined` where `supports.clock` is false. */
  readonly clock: FakeClock | undefined;
  /**
   * Unlike for each test, and the same for stores that must count together: a prefix, a table, or a file of its own keeps
   * what other tests left behind out.
   */
  readonly name: string;
}

export type StoreFactory = (options: ConformanceStoreOptions) => Store | Promise<Store>;

/** `test` of jest, vitest, mocha (`it`) or `node:test`. */
export type TestFunction = (name: string, body: () => Promise<void>) => unknown;

/** `realTime`: only for stores without a clock. */
export type Need = keyof ConformanceSupport | 'realTime';
