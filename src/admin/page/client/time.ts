import { h } from './dom.js';

const TIME = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const;
const DATE = { year: 'numeric', month: 'short', day: 'numeric' } as const;
const localTime = new Intl.DateTimeFormat(undefined, TIME);
const localDateTime = new Intl.DateTimeFormat(undefined, { ...DATE, ...TIME });
const utcTime = new Intl.DateTimeFormat(undefined, { ...TIME, timeZone: 'UTC' });
const utcDateTime = new Intl.DateTimeFormat(undefined, { ...DATE, ...TIME, timeZone: 'UTC' });

/** What the server's clock says, as far as its last answer told. */
let ahead = 0;

/** Learns from an answer how far the server's clock is ahead of the browser's. */
export function learnTime(serverNow: number): void {
  ahead = serverNow - Date.now();
}

export function serverNow(): number {
  return Date.now() + ahead;
}

/**
 * A moment in the viewer's zone, and in UTC beside it; with the date where it is not today's. Each is isolated: in a language
 * that is written from the right, the two would change places.
 */
export function timeElement(ms: number): HTMLTimeElement {
  const moment = new Date(ms);
  const isToday = new Date(serverNow()).toDateString() === moment.toDateString();
  return h(
    'time',
    { datetime: moment.toISOString() },
    h('bdi', {}, (isToday ? localTime : localDateTime).format(moment)),
    ' ',
    h('bdi', { class: 'utc' }, `${(isToday ? utcTime : utcDateTime).format(moment)} UTC`),
  );
}

/** `15 min`, `2 h 5 min`: the two largest units, rounded up in the last. */
export function duration(sec: number): string {
  const units: readonly (readonly [name: string, sec: number])[] = [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
  ];
  for (const [i, [name, length]] of units.entries()) {
    if (sec < length) continue;
    const [smaller, step] = units[i + 1] ?? (['s', 1] as const);
    const whole = Math.floor(sec / length);
    const rest = Math.ceil((sec - whole * length) / step);
    if (rest * step >= length) return `${String(whole + 1)} ${name}`;
    return rest === 0 ? `${String(whole)} ${name}` : `${String(whole)} ${name} ${String(rest)} ${smaller}`;
  }
  return `${String(sec < 1 ? sec : Math.ceil(sec))} s`;
}

/** How long until then: `in 12 min`. */
export function until(ms: number): string {
  const left = ms - serverNow();
  return left <= 0 ? 'over' : `in ${duration(Math.ceil(left / 1000))}`;
}
