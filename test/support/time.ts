import { createHook } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';

export const sleep = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));

/** Blocks the event loop, as a long computation does. */
export function blockLoop(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Counts the timers that our sources make while `work` runs; one that is refreshed is one. */
export async function countTimers(work: () => Promise<unknown>): Promise<number> {
  const timers = new Set<object>();
  const hook = createHook({
    init(_id, type, _trigger, resource: object) {
      // Jest has timers of its own.
      if (type === 'Timeout' && new Error().stack?.includes('/src/')) timers.add(resource);
    },
  }).enable();
  try {
    await work();
  } finally {
    hook.disable();
  }
  return timers.size;
}
