// What keeps the counters, filled one subject at a time.
import FastifyStore from '@fastify/rate-limit/store/LocalStore.js';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { createLimiter, MemoryStore } from '../limitkeeper.mjs';
import { ask } from '../measure/requests.mjs';
import * as middlewares from './middleware.mjs';

/**
 * `open(subjects, windowSec)`: `{ count(subject) }`, which resolves with how often the subject has come.
 */
const throughMiddleware = middleware => ({
  open: () => {
    const limit = 1_000_000;
    const handler = middleware.middleware(limit);
    return { count: async subject => limit - middleware.left(await ask(handler, subject)) };
  },
});

export const stores = {
  limitkeeper: {
    own: true,
    open: (subjects, windowSec, clock) => {
      const store = new MemoryStore({ maxKeys: subjects, clock });
      const limit = 1_000_000;
      const limiter = createLimiter({ scope: 'bench', limit, windowSec, store });
      return {
        count: async subject => limit - (await limiter.consume(subject)).remaining,
        block: async subject => limiter.block(subject, windowSec),
        size: () => store.size,
      };
    },
  },
  hitlimit: throughMiddleware(middlewares.hit),
  '@fastify/rate-limit': {
    // Its own store keeps 5,000 unless told otherwise.
    open: (subjects, windowSec) => {
      const store = new FastifyStore(false, false, subjects);
      return {
        count: subject =>
          new Promise((resolve, reject) => {
            const answered = (error, result) => (error === null ? resolve(result.current) : reject(error));
            store.incr(subject, answered, windowSec * 1000, 1_000_000);
          }),
      };
    },
  },
  'express-rate-limit': throughMiddleware(middlewares.expressLegacy),
  'rate-limiter-flexible': {
    open: (_subjects, windowSec) => {
      const limiter = new RateLimiterMemory({ points: 1_000_000, duration: windowSec });
      return { count: async subject => (await limiter.consume(subject)).consumedPoints };
    },
  },
};
