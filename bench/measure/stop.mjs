// How long nothing else could run: the longest of many calls, or of the turns of the event loop between them.
import { existsSync, readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

const SCHEDSTAT = '/proc/thread-self/schedstat';

/** On Linux, the ns that this thread has waited for a processor: no stop of its own. */
const waited = existsSync(SCHEDSTAT)
  ? () => Number(readFileSync(SCHEDSTAT, 'latin1').split(' ')[1])
  : () => 0;

/**
 * Milliseconds of the longest stop while `call(i)` is made `calls` times, or until `isOver()`.
 *
 * @param {(i: number) => unknown} call
 * @param {number} calls
 * @param {() => boolean} [isOver]
 */
export async function longestStop(call, calls, isOver = () => false) {
  let longest = 0;
  for (let i = 0; i < calls && !isOver();) {
    const before = waited();
    let most = 0;
    let start = process.hrtime.bigint();
    const lap = () => {
      const now = process.hrtime.bigint();
      most = Math.max(most, Number(now - start));
      start = now;
    };
    for (let n = 0; n < 1000 && i < calls; n += 1, i += 1) {
      await call(i);
      lap();
    }
    // Timers run between two turns.
    await setImmediate();
    lap();
    longest = Math.max(longest, most - (waited() - before));
  }
  return longest / 1e6;
}
