import { warnOncePerValue } from './warn-once.js';

const [HOUR, DAY] = [3600, 86_400];

/**
 * Is a number of seconds more likely one of milliseconds? People write 60000 or 900000 where they think of the milliseconds
 * of other limiters: whole thousands, of at least ten seconds. Nobody means them where they are also whole hours of up to
 * two days, whole days of up to 400, or years; unless those would be 125, 250 or 375 days, which are hours in milliseconds.
 */
export function looksLikeMilliseconds(sec: number): boolean {
  if (sec < 10_000 || sec % 1000 !== 0) return false;
  if (sec % (1000 * HOUR) === 0) return true;
  const isHours = sec % HOUR === 0 && sec <= 2 * DAY;
  const isDays = sec % DAY === 0 && sec <= 400 * DAY;
  const isYears = sec % (365 * DAY) === 0;
  return !isHours && !isDays && !isYears;
}

/** @param option as it was given, in seconds. */
export function warnOfMilliseconds(option: string, ms: number): void {
  const sec = ms / 1000;
  if (!looksLikeMilliseconds(sec)) return;
  warnOncePerValue(
    'LIMITKEEPER_LOOKS_LIKE_MILLISECONDS',
    // Without the rule's place in its list, which the middleware makes a second time for its limiter.
    `${option.replace(/^.*\./, '')} ${String(sec)}`,
    `${option} is ${String(sec)}, ${hours(sec)}; write ${String(sec / 1000)} for ${String(sec)} ms`,
  );
}

function hours(sec: number): string {
  return sec < 4 * DAY ? `${String(Math.round(sec / HOUR))} hours` : `${String(Math.round(sec / DAY))} days`;
}
