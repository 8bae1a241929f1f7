import { fold } from '../../src/core/decision.js';
import type { Decision, RuleReading } from '../../src/core/decision.js';

/** 2025-12-01T10:43:00.000Z, a whole second. */
export const NOON = 1_764_585_780_000;

/** An allowed reading of a rule of 120 a minute after one request, with what differs. */
export function reading(differs: Partial<RuleReading> = {}): RuleReading {
  return {
    scope: 'api.ip',
    allowed: true,
    reason: 'ok',
    limit: 120,
    remaining: 119,
    retryAfterMs: 0,
    moreAfterMs: 60_000,
    resetAfterMs: 60_000,
    windowMs: 60_000,
    shadow: false,
    ...differs,
  };
}

/** The reading of a rule that has nothing left for half a minute, with what differs. */
export function refusal(differs: Partial<RuleReading> = {}): RuleReading {
  return reading({
    allowed: false,
    reason: 'limit',
    remaining: 0,
    retryAfterMs: 30_000,
    moreAfterMs: 30_000,
    resetAfterMs: 30_000,
    ...differs,
  });
}

export function decided(readings: readonly RuleReading[], at: number = NOON): Decision {
  return fold(readings, at);
}

/** What a limiter answers while its store fails: nobody counted. */
export function degraded(failMode: 'open' | 'closed', retryAfterMs = 1000, at: number = NOON): Decision {
  const nobody = { ...fold([], at), degraded: failMode };
  return failMode === 'open' ? nobody : { ...nobody, allowed: false, reason: 'unavailable', retryAfterMs };
}
