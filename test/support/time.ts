import { createHook } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';

export const sleep = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));

/** Blocks the event loop, as a long computation does. */
export function blockLoop(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Counts the timers made while `work` runs, anywhere in the process. */
export async function countTimers(work: () => Promise<unknown>): Promise<number> {
  let timers = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === 'Timeout') timers += 1;
    },
  }).enable();
  try {
    await work();
  } finally {
    hook.disable();
  }
  return timers;
}
