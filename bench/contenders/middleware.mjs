// Middlewares for Express that count in memory, each with the options that it has by default, and an hour as the window.
import { hitlimit } from '@joint-ops/hitlimit';
import { rateLimit as expressRateLimit } from 'express-rate-limit';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { MemoryStore, rateLimit } from '../limitkeeper.mjs';
import { ask } from '../measure/requests.mjs';

export const HOUR = 3600;
const ROOM = 2_000_000;

const LEGACY = {
  'X-RateLimit-Limit': /^5$/,
  'X-RateLimit-Remaining': /^4$/,
  'X-RateLimit-Reset': /^\d+$/,
};
const STANDARD = { 'RateLimit-Policy': /"; ?q=5; ?w=3600/, RateLimit: /"; ?r=4; ?t=\d+/ };

const leftByLegacy = res => Number(res.getHeader('X-RateLimit-Remaining'));
const leftByStandard = res => Number(/; ?r=(\d+)/.exec(String(res.getHeader('RateLimit')))[1]);

/** @param {(limit: number) => Function} middleware */
export const contender = (name, middleware, headers, own = false) => ({
  name,
  own,
  middleware,
  headers,
  make: limit => {
    const handler = middleware(limit);
    return subject => ask(handler, subject);
  },
  passed: res => res.passed,
  left: 'X-RateLimit-Remaining' in headers ? leftByLegacy : leftByStandard,
});

const limitkeeper = (name, options, headers) =>
  contender(
    name,
    limit =>
      rateLimit({
        scope: 'bench',
        limit,
        windowSec: HOUR,
        store: new MemoryStore({ maxKeys: ROOM }),
        ...options,
      }),
    headers,
    true,
  );

/** The three headers that the others have, written as one writes them around a limiter that has no middleware. */
export const byHand = limiterOf => limit => {
  const limiter = limiterOf(limit);
  const writeHeaders = (res, { remainingPoints, msBeforeNext }) => {
    res.setHeader('X-RateLimit-Limit', limit);
    res.setHeader('X-RateLimit-Remaining', remainingPoints);
    res.setHeader('X-RateLimit-Reset', Math.ceil(msBeforeNext / 1000));
  };
  return (req, res, next) =>
    limiter.consume(req.ip).then(
      result => {
        writeHeaders(res, result);
        next();
      },
      result => {
        if (result instanceof Error) return next(result);
        writeHeaders(res, result);
        res.setHeader('Retry-After', Math.ceil(result.msBeforeNext / 1000));
        res.statusCode = 429;
        res.end('Too Many Requests');
      },
    );
};

const byKey = req => req.ip;

export const noLimiter = { name: 'no limiter', middleware: () => (_req, _res, next) => next() };

export const ours = limitkeeper('limitkeeper', {}, { ...LEGACY, ...STANDARD });
export const oursLegacy = limitkeeper(
  'limitkeeper, the three legacy headers',
  { headers: { legacy: true, standard: false } },
  LEGACY,
);
export const oursByKey = limitkeeper(
  'limitkeeper, a function for the key',
  { keyFn: byKey },
  { ...LEGACY, ...STANDARD },
);

export const hit = contender('hitlimit', limit => hitlimit({ limit, window: '1h' }), {
  ...LEGACY,
  'RateLimit-Limit': /^5$/,
  'RateLimit-Remaining': /^4$/,
  'RateLimit-Reset': /^\d+$/,
});

export const hitByKey = contender(
  'hitlimit, a function for the key',
  limit => hitlimit({ limit, window: '1h', key: byKey }),
  hit.headers,
);

// Its checks of the set-up run with the first request only, and want a request of Express.
const expressOptions = { windowMs: HOUR * 1000, validate: false };
export const expressDraft8 = contender(
  'express-rate-limit, draft-8',
  limit => expressRateLimit({ ...expressOptions, limit, standardHeaders: 'draft-8', legacyHeaders: false }),
  STANDARD,
);
export const expressLegacy = contender(
  'express-rate-limit',
  limit => expressRateLimit({ ...expressOptions, limit }),
  LEGACY,
);

export const flexible = contender(
  'rate-limiter-flexible by hand, three headers',
  byHand(points => new RateLimiterMemory({ points, duration: HOUR })),
  LEGACY,
);
