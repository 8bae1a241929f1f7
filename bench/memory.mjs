// What the memory store costs with few subjects and with many: bytes, time a decision, and the longest stop.
//
//   npm run build && node --expose-gc bench/memory.mjs
//
// Times are medians of paired bursts in one process, so that a busy machine disturbs all alike. A stop is the longest time
// that one decision takes, less (on Linux) what this thread waited for a processor meanwhile; that of a store in which
// nothing grows, expires or goes is told first, for it is the machine's and the garbage collector's.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createLimiter, MemoryStore } from '../dist/index.js';

const ROUNDS = 15;
const BURST = 20_000;
const RUNS = 5;
const MILLION = 1_000_000;
const { gc } = globalThis;
assert(gc, 'Start with node --expose-gc.');

const limiterOf = store => createLimiter({ scope: 'bench', limit: 10, windowSec: 3600, store });
const median = list => [...list].sort((a, b) => a - b)[list.length >> 1];
const say = (figure, digits, what) => console.log(`${figure.toFixed(digits).padStart(8)}  ${what}`);

function bytes() {
  for (let i = 0; i < 3; i += 1) gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Bytes for each of so many, made by `fill`. */
function bytesEach(count, fill) {
  const before = bytes();
  const store = new MemoryStore({ maxKeys: MILLION });
  fill(limiterOf(store), count);
  const each = (bytes() - before) / count;
  assert.equal(store.size, count);
  return each;
}

const consume = (limiter, count) => {
  for (let i = 0; i < count; i += 1) limiter.consume(i);
};
const block = (limiter, count) => {
  for (let i = 0; i < count; i += 1) limiter.block([`account ${i}`, '203.0.113.7'], 3600);
};

/** Microseconds a decision. */
function burst(limiter, subjectOf) {
  const start = process.hrtime.bigint();
  for (let i = 0; i < BURST; i += 1) limiter.consume(subjectOf(i));
  return Number(process.hrtime.bigint() - start) / BURST / 1000;
}

const SCHEDSTAT = '/proc/thread-self/schedstat';
const waited = existsSync(SCHEDSTAT)
  ? () => Number(readFileSync(SCHEDSTAT, 'latin1').split(' ')[1])
  : () => 0;

/** Milliseconds of the longest of so many decisions. */
function longest(limiter, subjectOf) {
  let longestYet = 0;
  for (let i = 0; i < MILLION;) {
    const before = waited();
    let most = 0;
    for (let n = 0; n < 1000; n += 1, i += 1) {
      const start = process.hrtime.bigint();
      limiter.consume(subjectOf(i));
      most = Math.max(most, Number(process.hrtime.bigint() - start));
    }
    longestYet = Math.max(longestYet, most - (waited() - before));
  }
  return longestYet / 1e6;
}

// The code and the library's own tables are there before anything is weighed.
bytesEach(50_000, consume);
bytesEach(5000, block);
const weigh = (count, fill, what) => say(median([1, 2, 3].map(() => bytesEach(count, fill))), 0, what);
weigh(10_000, consume, 'bytes a key, 10,000 subjects');
weigh(MILLION, consume, 'bytes a key, 1,000,000 subjects');
weigh(100_000, block, 'bytes a block of a subject of two parts, 100,000 blocks');

const few = limiterOf(new MemoryStore({ maxKeys: MILLION }));
const many = limiterOf(new MemoryStore({ maxKeys: MILLION }));
consume(few, 1000);
consume(many, MILLION);
const pairs = Array.from({ length: ROUNDS }, () => [
  burst(few, i => (i * 7919) % 1000),
  burst(many, i => (i * 7919) % MILLION),
]);
say(median(pairs.map(([a]) => a)), 2, 'µs a decision, 1,000 subjects');
say(median(pairs.map(([, b]) => b)), 2, 'µs a decision, 1,000,000 subjects');
say(median(pairs.map(([a, b]) => b / a)), 2, 'times as much with 1,000,000');
let fresh = MILLION;
const floods = Array.from({ length: ROUNDS }, () => burst(many, () => (fresh += 1)));
say(median(floods), 2, 'µs a decision on a new subject, the store full');

const stops = { still: [], coming: [], full: [], over: [] };
for (let run = 0; run < RUNS; run += 1) {
  let now = 1e12;
  const store = new MemoryStore({ maxKeys: MILLION, clock: { now: () => now } });
  const limiter = limiterOf(store);
  gc();
  stops.still.push(longest(few, i => i % 1000));
  stops.coming.push(longest(limiter, i => i));
  stops.full.push(longest(limiter, i => -1 - i));
  assert.equal(store.size, MILLION);
  now += 2 * 3600 * 1000;
  stops.over.push(longest(limiter, i => i % 1000));
  assert(store.size <= 2000, `${store.size} left`);
}
say(median(stops.still), 1, 'ms, longest stop while 1,000 known subjects come again');
say(median(stops.coming), 1, 'ms, longest stop while 1,000,000 subjects come');
say(median(stops.full), 1, 'ms, longest stop while as many come to the full store');
say(median(stops.over), 1, 'ms, longest stop while all of them expire');
