// Limiters that count in Redis, and the cheapest things one could do instead. `commands`: what each of them calls there.
import { rateLimit as expressRateLimit } from 'express-rate-limit';
import { RedisStore as RateLimitRedis } from 'rate-limit-redis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { createLimiter, loadRedisStore, rateLimit } from '../limitkeeper.mjs';
import {
  byHand,
  contender as middlewareContender,
  expressDraft8,
  flexible,
  HOUR,
  ours,
} from './middleware.mjs';

const RedisStore = await loadRedisStore();

const SCRIPTS = ['evalsha', 'eval', 'fcall'];
const AUTO = { enableAutoPipelining: true };

/** Each maker of a limiter has keys of its own. */
let made = 0;
const prefix = () => `bench${(made += 1)}:`;

/** A store that is slow or away must not look like a quick yes. */
const strict = { failMode: 'closed', storeTimeoutMs: 5000 };
const rule = { scope: 'bench', windowSec: HOUR };
const three = limit => [1, 2, 3].map(n => ({ scope: `bench.${n}`, limit, windowSec: HOUR * n }));

/** Contenders on clients of one server, made by `open(options)`. */
export async function redisContenders(open) {
  const plain = await open();
  const auto = await open(AUTO);
  const own = await open();

  const incr = (name, client) => ({
    name,
    commands: ['incr'],
    onlyCounts: true,
    make: () => {
      const before = prefix();
      return subject => client.incr(before + subject);
    },
    passed: count => count > 0,
    left: (count, limit) => limit - count,
  });
  const limiter = (name, rulesOf) => ({
    name,
    own: true,
    commands: SCRIPTS,
    make: limit => {
      const store = new RedisStore({ client: own, prefix: prefix() });
      const { consume } = bound(createLimiter({ ...rulesOf(limit), ...strict, store }));
      return consume;
    },
    passed: decision => decision.allowed && decision.degraded === undefined,
    left: decision => decision.remaining,
  });
  const middleware = (name, handlerOf, headers, isOwn) => ({
    ...middlewareContender(name, handlerOf, headers, isOwn),
    commands: SCRIPTS,
  });
  const limitkeeper = (name, rulesOf, headers) =>
    middleware(
      name,
      limit =>
        rateLimit({
          ...rulesOf(limit),
          ...strict,
          store: new RedisStore({ client: own, prefix: prefix() }),
        }),
      headers,
      true,
    );
  const flexibleOf = client => points =>
    new RateLimiterRedis({ storeClient: client, keyPrefix: prefix(), points, duration: HOUR });
  const express = (name, client) =>
    middleware(
      name,
      limit =>
        expressRateLimit({
          windowMs: HOUR * 1000,
          limit,
          validate: false,
          standardHeaders: 'draft-8',
          legacyHeaders: false,
          store: new RateLimitRedis({ sendCommand: (...args) => client.call(...args), prefix: prefix() }),
        }),
      expressDraft8.headers,
    );

  return {
    incr: incr('INCR', plain),
    incrAuto: incr('INCR, auto-pipelined', auto),
    middleware: limitkeeper('limitkeeper, middleware', limit => ({ ...rule, limit }), ours.headers),
    middlewareThree: limitkeeper('limitkeeper, middleware, three rules', limit => ({ rules: three(limit) }), {
      'X-RateLimit-Limit': /^5$/,
      'X-RateLimit-Remaining': /^4$/,
    }),
    limiter: limiter('limitkeeper, consume', limit => ({ ...rule, limit })),
    limiterThree: limiter('limitkeeper, consume, three rules', limit => ({ rules: three(limit) })),
    flexible: middleware('rate-limiter-flexible by hand', byHand(flexibleOf(plain)), flexible.headers),
    flexibleAuto: middleware(
      'rate-limiter-flexible by hand, auto-pipelined',
      byHand(flexibleOf(auto)),
      flexible.headers,
    ),
    flexibleConsume: {
      name: 'rate-limiter-flexible, consume',
      commands: SCRIPTS,
      make: points => bound(flexibleOf(plain)(points)).consume,
      passed: result => result.consumedPoints > 0,
      left: result => result.remainingPoints,
    },
    express: express('express-rate-limit with rate-limit-redis', plain),
    expressAuto: express('express-rate-limit with rate-limit-redis, auto-pipelined', auto),
    /** Limiters all of whose subjects are blocked: `consume` and the middleware. */
    blocked: async subjects => {
      const store = new RedisStore({ client: own, prefix: prefix() });
      const options = { ...rule, limit: 5, ...strict, store };
      const blocking = createLimiter(options);
      for (const subject of subjects) await blocking.block(subject, 'forever');
      const handOn = (_req, _res, next) => next('refused');
      return { consume: bound(blocking).consume, handler: rateLimit({ ...options, onLimited: handOn }) };
    },
  };
}

const bound = limiter => ({ consume: subject => limiter.consume(subject) });
