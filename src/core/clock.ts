/**
 * Tells the time in whole milliseconds since 1970. A store owns its clock; nothing else in the library asks for the time
 * of a decision. Tests pass a fake one (`FakeClock` in `limitkeeper/testing`).
 */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
