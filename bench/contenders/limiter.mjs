// Limiters without a middleware, in memory.
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { createLimiter, MemoryStore } from '../limitkeeper.mjs';
import { HOUR } from './middleware.mjs';

const ROOM = 2_000_000;

/** Contenders by what makes their `consume`. */
const contender = (name, make) => ({
  name,
  own: true,
  make,
  passed: decision => decision.allowed && decision.degraded === undefined,
  left: decision => decision.remaining,
});

const consuming = limiter => subject => limiter.consume(subject);

export const ours = contender('limitkeeper', limit =>
  consuming(
    createLimiter({ scope: 'bench', limit, windowSec: HOUR, store: new MemoryStore({ maxKeys: ROOM }) }),
  ),
);

export const oursThree = contender('limitkeeper, three rules', limit =>
  consuming(
    createLimiter({
      rules: [1, 2, 3].map(n => ({ scope: `bench.${n}`, limit, windowSec: HOUR * n })),
      store: new MemoryStore({ maxKeys: ROOM }),
    }),
  ),
);

export const flexible = {
  name: 'rate-limiter-flexible',
  make: points => consuming(new RateLimiterMemory({ points, duration: HOUR })),
  passed: result => result.consumedPoints > 0,
  left: result => result.remainingPoints,
};
