import type { Standing } from './api.js';
import { h } from './dom.js';
import { duration, serverNow, timeElement, until } from './time.js';

/** The browser knows the server's time no better than that. */
const SLACK_MS = 2000;

/** How much is used: the less, the better. */
export function meter(used: number, limit: number, scope: string): HTMLElement {
  return h('meter', {
    max: String(limit),
    low: String(limit * 0.6),
    high: String(limit * 0.9),
    optimum: '0',
    value: String(used),
    'aria-label': `${String(used)} of ${String(limit)} used in ${scope}`,
  });
}

/** How somebody stands in a scope, in words. */
export function words({ block: blocked, reading, counters, mode, strikes }: Standing): (Node | string)[] {
  if (blocked !== null) {
    const who = blocked.manual ? 'Blocked by hand' : 'Blocked by the rule';
    const ladder = strikes > 1 ? ` It is block ${String(strikes)} in a row.` : '';
    const shadow = mode === 'shadow' ? ' In shadow mode: it refuses nobody.' : '';
    if (blocked.until === null) return [`${who}, for ever.${shadow}`];
    const said = [
      `${who} until `,
      timeElement(blocked.until),
      ` (${until(blocked.until)}).${ladder}${shadow}`,
    ];
    const passes = serverNow() + (reading?.retryAfterMs ?? 0);
    // The wait covers block, counter and holds: where it is longer, the block's end is not when a request passes again.
    if (passes - blocked.until < SLACK_MS) return said;
    return [...said, ' The counter is used up as well, until ', timeElement(passes), '.'];
  }
  if (mode === 'off') return ['The rule is off.'];
  const held = counters.reduce((sum, counter) => sum + counter.held, 0);
  const holding = held === 0 ? '' : ` ${String(held)} on hold.`;
  if (reading === null) {
    const used = counters.map(
      ({ used: units, windowSec }) => `${String(units ?? '?')} in ${duration(windowSec)}`,
    );
    return [
      used.length === 0
        ? 'Nothing is counted.'
        : `Used ${used.join(', ')}; the limit comes with each request.`,
    ];
  }
  const { remaining, limit, allowed, retryAfterMs } = reading;
  if (allowed) return [`${String(remaining)} of ${String(limit)} left.${holding}`];
  const wait = retryAfterMs === null ? 'for good' : `for ${duration(Math.ceil(retryAfterMs / 1000))}`;
  return [`Used up: refused ${wait}.${holding}`];
}
