import type { Block, Standing } from './api.js';
import { h } from './dom.js';
import { duration, timeElement, until } from './time.js';

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

/** How somebody stands in a scope, in words. `at`: when that was so, by the server's clock. */
export function words(standing: Standing, at: number): (Node | string)[] {
  const { block: blocked, reading, counters, mode } = standing;
  if (blocked !== null) return [...blockWords(standing, blocked), ...usedUpWords(standing, at)];
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

function blockWords({ strikes, mode }: Standing, { manual, until: end }: Block): (Node | string)[] {
  const who = manual ? 'Blocked by hand' : 'Blocked by the rule';
  const ladder = strikes > 1 ? ` It is block ${String(strikes)} in a row.` : '';
  const shadow = mode === 'shadow' ? ' In shadow mode: it refuses nobody.' : '';
  if (end === null) return [`${who}, for ever.${shadow}`];
  return [`${who} until `, timeElement(end), ` (${until(end)}).${ladder}${shadow}`];
}

/** Another block waits behind this one: to end it alone lets nobody in. */
function usedUpWords({ withoutBlock }: Standing, at: number): (Node | string)[] {
  if (withoutBlock?.allowed !== false) return [];
  const { retryAfterMs } = withoutBlock;
  return retryAfterMs === null
    ? [' The counter refuses as well, for good.']
    : [' The counter is used up as well, until ', timeElement(at + retryAfterMs), '.'];
}
