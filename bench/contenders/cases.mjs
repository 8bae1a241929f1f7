// What else a rule of limitkeeper does to a request, as runners: each asks what is answered, every time.
import assert from 'node:assert/strict';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { byStatus, getRateLimit, MemoryStore, rateLimit } from '../limitkeeper.mjs';
import { loaded } from '../measure/check.mjs';
import { ask, subjectsOf } from '../measure/requests.mjs';
import { byHand, HOUR } from './middleware.mjs';

const SUBJECTS = 1000;
const LIMIT = 1_000_000;
const store = () => new MemoryStore();
const rule = { scope: 'bench', limit: LIMIT, windowSec: HOUR };
export const handOn = (_req, _res, next) => next('refused');
const allowed = res => res.passed;
const refused = res => !res.passed;

const answering =
  (status, before = () => undefined) =>
  (req, res) => {
    before(req);
    res.statusCode = status;
    res.end();
  };

/** Every subject asks in turn; the handler answers like `handler`. */
function asking(name, middleware, { handler, isRight = allowed, own = true } = {}) {
  const subjectOf = subjectsOf(SUBJECTS);
  return { name, own, run: i => ask(middleware, subjectOf(i), handler), isRight };
}

async function exhaust(middleware, limit) {
  await loaded;
  const subjectOf = subjectsOf(SUBJECTS);
  for (let i = 0; i < SUBJECTS * limit; i += 1) {
    assert.equal((await ask(middleware, subjectOf(i))).passed, true);
  }
  for (let i = 0; i < SUBJECTS; i += 1) assert.equal((await ask(middleware, subjectOf(i))).passed, false);
}

export const one = () => asking('one rule, allowed', rateLimit({ ...rule, store: store() }));

export const three = () =>
  asking(
    'three rules, allowed',
    rateLimit({
      rules: [1, 2, 3].map(n => ({ ...rule, scope: `bench.${n}`, windowSec: HOUR * n })),
      store: store(),
    }),
  );

/** Nine of ten requests come from subjects that have used up the limit, one from somebody who has not. */
async function mostlyRefused(name, make, own) {
  const limit = 100;
  const middleware = make(limit);
  await exhaust(middleware, limit);
  const spent = subjectsOf(SUBJECTS);
  const all = subjectsOf(100_000);
  const others = i => all(i).replace(/^81\./, '82.');
  const isFresh = i => i % 10 === 0;
  return {
    name,
    own,
    run: i => ask(middleware, isFresh(i) ? others(i / 10) : spent(i)),
    isRight: (res, i) => res.passed === isFresh(i),
  };
}

export const refusals = onLimited =>
  mostlyRefused(
    onLimited === undefined ? '90 % refused, answered' : '90 % refused, handed on',
    limit => rateLimit({ ...rule, limit, onLimited, store: store() }),
    true,
  );

export const refusalsByHand = () =>
  mostlyRefused(
    'rate-limiter-flexible by hand, 90 % refused',
    byHand(points => new RateLimiterMemory({ points, duration: HOUR })),
    false,
  );

export async function blocked(onLimited) {
  const middleware = rateLimit({ ...rule, limit: 1, blockSec: HOUR, onLimited, store: store() });
  await exhaust(middleware, 1);
  const name = onLimited === undefined ? 'blocked, answered' : 'blocked, handed on';
  return asking(name, middleware, { isRight: refused });
}

export async function blockedByHand() {
  const middleware = byHand(points => new RateLimiterMemory({ points, duration: HOUR, blockDuration: HOUR }))(
    1,
  );
  await exhaust(middleware, 1);
  return asking('rate-limiter-flexible by hand, blocked', middleware, { isRight: refused, own: false });
}

/** Failures count; each is reserved first, so that guesses at once cannot overshoot, and settled as the response ends. */
export async function byOutcome(status) {
  const options = { ...rule, count: 'failures', outcome: byStatus };
  const middleware = rateLimit({ ...options, store: store() });
  const handler = answering(status);
  // Five failures are counted, five successes are not.
  const small = rateLimit({ ...options, limit: 5, store: store() });
  await loaded;
  for (let i = 0; i < 5; i += 1) await ask(small, '192.0.2.1', handler);
  assert.equal((await ask(small, '192.0.2.1', handler)).passed, status < 400);
  return asking(`by outcome, a ${status < 400 ? 'success' : 'failure'}`, middleware, { handler });
}

export async function settled() {
  const options = { ...rule, reserve: true, cost: 3 };
  const handler = answering(200, req => {
    void getRateLimit(req).settle(2);
  });
  // Of 6, two requests leave 2: too few for a third.
  const small = rateLimit({ ...options, limit: 6, store: store() });
  const passed = [];
  await loaded;
  for (let i = 0; i < 3; i += 1) passed.push((await ask(small, '192.0.2.1', handler)).passed);
  assert.deepEqual(passed, [true, true, false]);
  return asking('reserved, settled by the handler', rateLimit({ ...options, store: store() }), { handler });
}
