import { Limiter } from '../../src/core/limiter.js';
import type { LimiterOptions, LimiterRule, LimiterSettings } from '../../src/core/limiter-options.js';
import type { Store } from '../../src/core/store.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { NOON } from './decisions.js';
import { FaultyStore } from './faulty-store.js';

/** A limiter whose stores, the one of the fail mode too, live on one clock that stands still. */
export function limiterOn(clock: FakeClock, options: LimiterOptions, store?: Store): Limiter {
  const memory = () => new MemoryStore({ clock });
  return new Limiter({ store: store ?? memory(), ...options }, { defaultStore: memory, localStore: memory });
}

/** The same over a store that fails to order. */
export function limiterWithFaults(
  rules: LimiterRule | readonly LimiterRule[],
  settings: LimiterSettings & { readonly isAsync?: boolean } = {},
): { limiter: Limiter; store: FaultyStore; memory: MemoryStore; clock: FakeClock } {
  const clock = new FakeClock(NOON);
  const memory = new MemoryStore({ clock });
  const { isAsync = true, ...rest } = settings;
  const store = new FaultyStore(memory, { isAsync });
  const own = 'scope' in rules ? rules : { rules };
  return { limiter: limiterOn(clock, { ...own, ...rest, store }), store, memory, clock };
}
