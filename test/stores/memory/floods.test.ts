import { MemoryStore } from '../../../src/stores/memory/memory-store.js';
import { FakeClock } from '../../../src/testing/index.js';
import { NOON } from '../../support/decisions.js';
import { cheapSubject, consume, one, peek, rule, subject } from '../../support/subjects.js';

const MOST = 2000;
const login = rule({ scope: 'login', limit: 5, windowSec: 900, blockSec: 900 });
const victim = subject('victim@example.org');

/** A store that is full of standing blocks. */
function flooded(): MemoryStore {
  const store = new MemoryStore({ clock: new FakeClock(NOON), maxKeys: MOST });
  for (let i = 0; i < MOST + 200; i += 1) {
    one(store, { rule: login, subject: cheapSubject(i), operation: { type: 'charge', units: 5 } });
  }
  expect(store.blocked({ count: 10_000 }).blocks).toHaveLength(MOST);
  return store;
}

/** How many of 50 pass, each followed by one of somebody else, who would drive it out if there were no room. */
function passing(store: MemoryStore, counted: typeof login): number {
  let passed = 0;
  for (let i = 0; i < 50; i += 1) {
    if (one(store, { rule: counted, subject: victim, operation: consume(1) }).allowed) passed += 1;
    one(store, { rule: counted, subject: cheapSubject(100_000 + i), operation: consume(1) });
  }
  return passed;
}

describe('S7: a flood of blocks', () => {
  test('ends no limit: of 50 guesses against a limit of 5, 5 pass', () => {
    expect(passing(flooded(), login)).toBe(5);
  });

  test('leaves the other limiters of the store counting', () => {
    const api = rule({ scope: 'api.user', limit: 3, windowSec: 600 });
    const store = flooded();
    expect(passing(store, api)).toBe(3);
    expect(passing(store, login)).toBe(5);
  });

  test('takes no counter away', () => {
    const store = new MemoryStore({ clock: new FakeClock(NOON), maxKeys: 100 });
    for (let i = 0; i < 100; i += 1) {
      one(store, { rule: rule(), subject: cheapSubject(i), operation: consume(1) });
    }
    for (let i = 0; i < 1000; i += 1) {
      one(store, {
        rule: rule({ scope: 'b' }),
        subject: cheapSubject(i),
        operation: { type: 'block', ms: 1000 },
      });
    }
    const used = [...Array(100).keys()].map(
      i => one(store, { rule: rule(), subject: cheapSubject(i), operation: peek(1) }).remaining,
    );
    expect(used).toEqual(Array(100).fill(9));
    expect(store.size).toBe(200);
  });

  test('drives out those that end first, one for ever last, and not at all those that end later', () => {
    const store = new MemoryStore({ clock: new FakeClock(NOON), maxKeys: 100 });
    const block = (i: number, ms: number | null) =>
      one(store, { rule: rule(), subject: cheapSubject(i), operation: { type: 'block', ms } });
    for (let i = 0; i < 40; i += 1) block(i, null);
    for (let i = 40; i < 100; i += 1) block(i, 1000 * (1000 - i));
    for (let i = 100; i < 150; i += 1) block(i, 500);
    const standing = () =>
      new Set(store.blocked({ count: 1000 }).blocks.map(({ subjectHash }) => subjectHash));
    const hashes = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => cheapSubject(from + i).hash);
    expect(standing()).toEqual(new Set(hashes(0, 100)));
    for (let i = 200; i < 220; i += 1) block(i, 10_000_000);
    expect(standing()).toEqual(new Set([...hashes(0, 80), ...hashes(200, 220)]));
  });
});

test('S7: a flood of counters frees none of as many blocked as there is room for', () => {
  const store = new MemoryStore({ clock: new FakeClock(NOON), maxKeys: MOST });
  for (let i = 0; i < MOST; i += 1) {
    one(store, { rule: login, subject: cheapSubject(i), operation: { type: 'charge', units: 5 } });
  }
  for (let i = 0; i < 20_000; i += 1) {
    one(store, { rule: rule(), subject: cheapSubject(1_000_000 + i), operation: consume(1) });
  }
  const reasons = [...Array(MOST).keys()].map(
    i => one(store, { rule: login, subject: cheapSubject(i), operation: peek(0) }).reason,
  );
  expect(new Set(reasons)).toEqual(new Set(['blocked']));
  expect(store.size).toBe(2 * MOST);
});

test('a plan that brings a new window every time fills no more than its room, and leaves with its counters', () => {
  const clock = new FakeClock(NOON);
  const store = new MemoryStore({ clock, maxKeys: 500 });
  for (let i = 1; i <= 2000; i += 1) {
    one(store, { rule: rule({ windowSec: i }), subject: subject(String(i % 10)), operation: consume(1) });
  }
  expect(store.size).toBe(500);
  clock.advance(10_000_000);
  for (let i = 0; i < 1000; i += 1) one(store, { rule: rule(), subject: victim, operation: peek(1) });
  expect(store.size).toBe(0);
});

test.each(['reset', 'forgive'] as const)('%s forgets the counters of every window of its scope', type => {
  const store = new MemoryStore({ clock: new FakeClock(NOON) });
  for (const windowSec of [60, 600, 3600]) {
    one(store, { rule: rule({ windowSec }), subject: victim, operation: consume(1) });
  }
  one(store, { rule: rule({ scope: 'other' }), subject: victim, operation: consume(1) });
  // The rule that forgets has no counter of its own.
  one(store, { rule: rule({ windowSec: 7 }), subject: victim, operation: { type } });
  expect(store.inspect(victim.hash).map(({ scope }) => scope)).toEqual(['other']);
});
