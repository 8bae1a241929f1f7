import { MemoryStore } from '../../../src/stores/memory/memory-store.js';
import { defaultMemoryStore } from '../../../src/stores/memory/default-store.js';
import { FakeClock } from '../../../src/testing/index.js';
import { subjectOfHash } from '../../../src/core/subject.js';
import { NOON } from '../../support/decisions.js';
import { cheapSubject, consume, one, peek, rule, subject } from '../../support/subjects.js';
import { applyBatch } from '../../../src/testing/batch.js';

const DAY = 86_400_000;
const alice = subject('alice');

describe('construction', () => {
  test.each([
    [{ maxKeys: 0 }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'maxKeys'],
    [{ maxKeys: 1.5 }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'maxKeys'],
    [{ maxKeys: Infinity }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'maxKeys'],
    [{ maxKeys: 16_000_001 }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'maxKeys'],
    [{ maxKeys: '5' }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'maxKeys'],
    [{ clock: 5 }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'clock'],
    [{ clock: {} }, 'ERR_LIMITKEEPER_OPTION_TYPE', 'clock'],
    [{ clock: { now: () => 1.5 } }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'clock'],
    [{ clock: { now: () => NaN } }, 'ERR_LIMITKEEPER_OPTION_RANGE', 'clock'],
    [{ maxkeys: 5 }, 'ERR_LIMITKEEPER_UNKNOWN_OPTION', 'maxkeys'],
  ])('refuses %j with %s', (options, code, option) => {
    expect(() => new MemoryStore(options as object)).toThrow(expect.objectContaining({ code, option }));
  });

  test('takes options that are undefined for left out', () => {
    expect(new MemoryStore({ clock: undefined, maxKeys: undefined }).size).toBe(0);
  });
});

describe('bounded', () => {
  test('300,000 subjects never make it keep more than maxKeys', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock, maxKeys: 5000 });
    const counted = rule();
    let largest = 0;
    for (let i = 0; i < 300_000; i += 1) {
      if (i % 100 === 0) clock.advance(1);
      applyBatch(store, [{ rule: counted, subject: cheapSubject(i), operation: consume(1) }]);
      largest = Math.max(largest, store.size);
    }
    expect(largest).toBe(5000);
  });

  test('a key is one cell: a subject in two scopes counts twice', () => {
    const store = new MemoryStore({ maxKeys: 3 });
    for (const scope of ['a', 'b', 'c', 'd']) {
      one(store, { rule: rule({ scope }), subject: alice, operation: consume(1) });
    }
    expect(store.size).toBe(3);
    expect(store.inspect(alice.hash)).toHaveLength(3);
  });

  test('a batch of more rules than there is room for still decides', () => {
    const store = new MemoryStore({ maxKeys: 1 });
    const batch = ['a', 'b', 'c'].map(scope => ({
      rule: rule({ scope }),
      subject: alice,
      operation: consume(1),
    }));
    for (let i = 0; i < 3; i += 1)
      expect(applyBatch(store, batch).readings.map(r => r.allowed)).toEqual([true, true, true]);
    expect(store.size).toBe(1);
  });

  test('what only looks takes no room', () => {
    const store = new MemoryStore({ maxKeys: 10 });
    for (let i = 0; i < 100; i += 1)
      one(store, { rule: rule(), subject: cheapSubject(i), operation: peek(1) });
    expect(store.size).toBe(0);
  });
});

describe('a flood', () => {
  test('frees no blocked subject, even where nearly all are blocked', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock, maxKeys: 1000 });
    const blocking = rule({ limit: 1, blockSec: 3600 });
    for (let i = 0; i < 999; i += 1) {
      one(store, { rule: blocking, subject: cheapSubject(i), operation: { type: 'charge', units: 1 } });
    }
    for (let i = 1000; i < 31_000; i += 1) {
      one(store, { rule: rule(), subject: cheapSubject(i), operation: consume(1) });
    }
    const free = [...Array(999).keys()].filter(
      i => one(store, { rule: blocking, subject: cheapSubject(i), operation: peek(0) }).reason !== 'blocked',
    );
    expect(free).toEqual([]);
  });

  test('drives itself out, not those who have used much', () => {
    const store = new MemoryStore({ clock: new FakeClock(NOON), maxKeys: 1000 });
    for (let i = 0; i < 300; i += 1) {
      one(store, { rule: rule(), subject: cheapSubject(i), operation: consume(9) });
    }
    for (let i = 1000; i < 21_000; i += 1) {
      one(store, { rule: rule(), subject: cheapSubject(i), operation: consume(1) });
    }
    const forgotten = [...Array(300).keys()].filter(
      i => one(store, { rule: rule(), subject: cheapSubject(i), operation: peek(1) }).remaining !== 1,
    );
    // Of 16 drawn, all must be of the 30 % that are full for one of them to go: 0.3^16 a time, 0.0001 in all.
    expect(forgotten).toEqual([]);
  });
});

describe('who goes when it is full', () => {
  const ten = { limit: 10, windowSec: 60 } as const;

  test('the emptiest, as a share of its own capacity', () => {
    const store = new MemoryStore({ clock: new FakeClock(NOON), maxKeys: 3 });
    const wide = rule({ ...ten, scope: 'wide', limit: 1000 });
    const narrow = rule({ ...ten, scope: 'narrow', limit: 2 });
    one(store, { rule: narrow, subject: alice, operation: consume(1) }); // 1/2
    one(store, { rule: wide, subject: alice, operation: consume(400) }); // 2/5
    one(store, {
      rule: rule({ ...ten, scope: 'held' }),
      subject: alice,
      operation: { type: 'reserve', cost: 6 },
    });
    one(store, { rule: rule({ ...ten, scope: 'new' }), subject: alice, operation: consume(1) });
    expect(scopes(store)).toEqual(['held', 'narrow', 'new']);
  });

  test.each([
    // After half its drain a bucket of 8 holds 4 of 10; a sliding window fades in its second window only.
    ['token-bucket', 8, 24_000, 5],
    ['sliding-window', 8, 90_000, 5],
  ] as const)('%s: what has leaked or faded since counts no more', (algorithm, units, after, other) => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock, maxKeys: 2 });
    one(store, {
      rule: rule({ ...ten, scope: 'older', algorithm }),
      subject: alice,
      operation: consume(units),
    });
    clock.advance(after);
    one(store, { rule: rule({ ...ten, scope: 'fresh' }), subject: alice, operation: consume(other) });
    one(store, { rule: rule({ ...ten, scope: 'new' }), subject: alice, operation: consume(9) });
    expect(scopes(store)).toEqual(['fresh', 'new']);
  });

  test.each(['fixed-window', 'sliding-window', 'sliding-log'] as const)(
    '%s: what still counts in full is not taken for less',
    algorithm => {
      const clock = new FakeClock(NOON);
      const store = new MemoryStore({ clock, maxKeys: 2 });
      one(store, {
        rule: rule({ ...ten, scope: 'older', algorithm }),
        subject: alice,
        operation: consume(8),
      });
      clock.advance(59_999);
      one(store, { rule: rule({ ...ten, scope: 'fresh' }), subject: alice, operation: consume(7) });
      one(store, { rule: rule({ ...ten, scope: 'new' }), subject: alice, operation: consume(9) });
      expect(scopes(store)).toEqual(['new', 'older']);
    },
  );

  test('what is over goes before all that counts', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock, maxKeys: 2000 });
    const brief = rule({ scope: 'brief', windowSec: 1 });
    const long = rule({ scope: 'long', windowSec: 3600, limit: 1000 });
    for (let i = 0; i < 1000; i += 1) {
      one(store, { rule: brief, subject: cheapSubject(i), operation: consume(10) });
      one(store, { rule: long, subject: cheapSubject(i), operation: consume(1) });
    }
    clock.advance(2000);
    for (let i = 5000; i < 6000; i += 1) {
      one(store, { rule: rule({ scope: 'new' }), subject: cheapSubject(i), operation: consume(10) });
    }
    const kept = [...Array(1000).keys()].filter(i => store.inspect(cheapSubject(i).hash).length === 1);
    expect(kept).toHaveLength(1000);
  });

  test('what is over by one millisecond is over', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock, maxKeys: 2 });
    const fixed = (scope: string, windowSec: number) => rule({ scope, windowSec, algorithm: 'fixed-window' });
    one(store, { rule: fixed('brief', 60), subject: alice, operation: consume(10) });
    one(store, { rule: fixed('long', 61), subject: alice, operation: consume(1) });
    clock.advance(60_000);
    one(store, { rule: fixed('new', 60), subject: alice, operation: consume(10) });
    expect(scopes(store)).toEqual(['long', 'new']);
  });

  test('among blocked ones the block that ends first, one for ever last', () => {
    const store = new MemoryStore({ clock: new FakeClock(NOON), maxKeys: 3 });
    const blockFor = (scope: string, ms: number | null) =>
      one(store, { rule: rule({ scope }), subject: alice, operation: { type: 'block', ms } });
    blockFor('for ever', null);
    blockFor('a minute', 60_000);
    blockFor('an hour', 3_600_000);
    blockFor('a day', DAY);
    expect(scopes(store)).toEqual(['a day', 'an hour', 'for ever']);
    blockFor('a week', 7 * DAY);
    blockFor('a month', 30 * DAY);
    expect(scopes(store)).toEqual(['a month', 'a week', 'for ever']);
  });

  test('S7: strikes that are remembered are no prey of counters, but go before every standing block', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock, maxKeys: 2 });
    const ladder = rule({ scope: 'ladder', limit: 1, windowSec: 1, blockSec: [60, 300] });
    one(store, { rule: ladder, subject: alice, operation: { type: 'charge', units: 1 } });
    clock.advance(60_000);
    for (const scope of ['used', 'new', 'newer']) {
      one(store, { rule: rule({ scope }), subject: alice, operation: consume(5) });
    }
    expect(scopes(store)).toEqual(expect.arrayContaining(['ladder', 'newer']));
    expect(scopes(store)).toHaveLength(3);
    for (const scope of ['new', 'newer']) {
      one(store, { rule: rule({ scope }), subject: alice, operation: { type: 'block', ms: 1000 } });
    }
    expect(scopes(store)).not.toContain('ladder');
  });

  function scopes(store: MemoryStore): string[] {
    return store
      .inspect(alice.hash)
      .map(cell => cell.scope)
      .sort();
  }
});

describe('expiry', () => {
  test('is swept by the calls that follow, whatever they ask', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock });
    for (let i = 0; i < 1000; i += 1) {
      one(store, { rule: rule(), subject: cheapSubject(i), operation: consume(1) });
    }
    clock.advance(120_000);
    for (let i = 0; i < 1000 && store.size > 0; i += 1) {
      one(store, { rule: rule(), subject: alice, operation: peek(1) });
    }
    expect(store.size).toBe(0);
  });

  test('a call sweeps a handful: one after a long pause is as quick as any', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock });
    for (let i = 0; i < 1000; i += 1) {
      one(store, { rule: rule(), subject: cheapSubject(i), operation: consume(1) });
    }
    clock.advance(365 * DAY);
    one(store, { rule: rule(), subject: alice, operation: peek(1) });
    expect(store.size).toBeGreaterThanOrEqual(1000 - 10);
  });

  test('P51: a window and a block of 30 days hold, and are gone after', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock });
    const monthly = rule({ limit: 1, windowSec: (30 * DAY) / 1000, algorithm: 'fixed-window' });
    one(store, { rule: monthly, subject: alice, operation: consume(1) });
    one(store, { rule: rule({ scope: 'b' }), subject: alice, operation: { type: 'block', ms: 30 * DAY } });
    for (const day of [0.001, 1, 24.8, 24.9, 29.9]) {
      clock.set(NOON + day * DAY);
      expect(one(store, { rule: monthly, subject: alice, operation: peek(1) }).reason).toBe('limit');
      expect(one(store, { rule: rule({ scope: 'b' }), subject: alice, operation: peek(1) }).reason).toBe(
        'blocked',
      );
    }
    clock.set(NOON + 30 * DAY);
    one(store, { rule: rule(), subject: subject('bob'), operation: peek(1) });
    expect(store.size).toBe(0);
  });

  test('survives a clock that steps back by a day and on again', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock });
    const fixed = rule({ algorithm: 'fixed-window' });
    const use = (name: string) => one(store, { rule: fixed, subject: subject(name), operation: consume(10) });
    use('before');
    clock.advance(-DAY);
    use('meanwhile');
    clock.advance(60_000);
    expect(one(store, { rule: fixed, subject: subject('meanwhile'), operation: peek(10) }).allowed).toBe(
      true,
    );
    expect(one(store, { rule: fixed, subject: subject('before'), operation: peek(1) }).allowed).toBe(false);
    one(store, { rule: fixed, subject: alice, operation: peek(1) });
    expect(store.size).toBe(1);
    clock.set(NOON + 60_000);
    one(store, { rule: fixed, subject: alice, operation: peek(1) });
    expect(store.size).toBe(0);
  });

  test('uses no timer, and holds no process open', () => {
    const timers = ['setTimeout', 'setInterval', 'setImmediate'] as const;
    const spies = timers.map(name => jest.spyOn(globalThis, name));
    const before = process.getActiveResourcesInfo().length;
    const store = new MemoryStore();
    one(store, { rule: rule({ limit: 1, blockSec: 60 }), subject: alice, operation: consume(1) });
    one(store, { rule: rule({ limit: 1, blockSec: 60 }), subject: alice, operation: consume(1) });
    one(store, { rule: rule({ scope: 'r' }), subject: alice, operation: { type: 'reserve', cost: 1 } });
    const calls = spies.map(spy => spy.mock.calls.length);
    spies.forEach(spy => spy.mockRestore());
    expect(calls).toEqual([0, 0, 0]);
    expect(process.getActiveResourcesInfo().length).toBeLessThanOrEqual(before);
  });
});

describe('blocked', () => {
  test('finds those of one part, in the order in which they began', () => {
    const store = new MemoryStore({ clock: new FakeClock(NOON) });
    const block = (...parts: string[]) =>
      one(store, { rule: rule(), subject: subject(...parts), operation: { type: 'block', ms: 60_000 } });
    block('b@example.org', '203.0.113.7');
    block('x@example.org', '203.0.113.8');
    block('a@example.org', '203.0.113.7');
    const { blocks } = store.blocked({ part: subject('203.0.113.7').hash });
    expect(blocks.map(entry => entry.subjectHash)).toEqual([
      subject('b@example.org', '203.0.113.7').hash,
      subject('a@example.org', '203.0.113.7').hash,
    ]);
  });

  test('goes on where the page ended, though thousands ended between', () => {
    const store = new MemoryStore({ clock: new FakeClock(NOON) });
    const hashOf = (i: number) => cheapSubject(i).hash;
    for (let i = 0; i < 5000; i += 1) {
      one(store, { rule: rule(), subject: cheapSubject(i), operation: { type: 'block', ms: null } });
    }
    const first = store.blocked({ count: 10 });
    expect(first.blocks.map(entry => entry.subjectHash)).toEqual([...Array(10).keys()].map(hashOf));
    for (let i = 0; i < 4900; i += 1) store.reset(hashOf(i));
    const rest = store.blocked({ cursor: first.cursor!, count: 1000 });
    expect(rest.blocks.map(entry => entry.subjectHash)).toEqual(
      [...Array(100).keys()].map(i => hashOf(4900 + i)),
    );
    expect(rest.cursor).toBeUndefined();
  });

  test('one that ended and began anew is listed by its new beginning', () => {
    const clock = new FakeClock(NOON);
    const store = new MemoryStore({ clock });
    const block = (name: string, ms: number) =>
      one(store, { rule: rule(), subject: subject(name), operation: { type: 'block', ms } });
    const use = () => one(store, { rule: rule(), subject: subject('a'), operation: consume(1) });
    use();
    block('a', 1000);
    block('b', 60_000);
    clock.advance(1000);
    use();
    block('a', 60_000);
    expect(store.blocked().blocks.map(entry => entry.subjectHash)).toEqual([
      subject('b').hash,
      subject('a').hash,
    ]);
  });

  test('a subject blocked by its hash is found by it', () => {
    const store = new MemoryStore({ clock: new FakeClock(NOON) });
    const { hash } = alice;
    one(store, { rule: rule(), subject: subjectOfHash(hash), operation: { type: 'block', ms: null } });
    expect(store.blocked({ part: hash }).blocks).toEqual([
      { subjectHash: hash, scope: 's', since: NOON, until: null, manual: true },
    ]);
  });

  test('works the part hashes out only when a block begins', () => {
    let read = 0;
    const watched = {
      hash: alice.hash,
      get partHashes() {
        read += 1;
        return [alice.hash];
      },
    };
    const store = new MemoryStore({ clock: new FakeClock(NOON) });
    const counted = rule({ limit: 2, blockSec: 60 });
    for (const _ of [1, 2]) one(store, { rule: counted, subject: watched, operation: consume(1) });
    expect(read).toBe(0);
    for (const _ of [1, 2, 3]) one(store, { rule: counted, subject: watched, operation: consume(1) });
    expect(read).toBe(1);
  });

  test.each([
    [{ part: 'alice@example.org' }, 'ERR_LIMITKEEPER_SUBJECT'],
    [{ count: 0 }, 'ERR_LIMITKEEPER_OPTION_RANGE'],
    [{ cursor: 'x' }, 'ERR_LIMITKEEPER_OPTION_RANGE'],
    [{ cursor: 5 }, 'ERR_LIMITKEEPER_OPTION_TYPE'],
  ])('refuses the query %j with %s', (query, code) => {
    expect(() => new MemoryStore().blocked(query as object)).toThrow(expect.objectContaining({ code }));
  });

  test('names no plain subject in the error for one', () => {
    expect(() => new MemoryStore().blocked({ part: 'alice@example.org' })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('alice') }),
    );
  });
});

test('close ends nothing that others use', () => {
  const store = new MemoryStore({ clock: new FakeClock(NOON) });
  one(store, { rule: rule(), subject: alice, operation: consume(3) });
  store.close();
  expect(one(store, { rule: rule(), subject: alice, operation: consume(1) }).remaining).toBe(6);
});

test('inspect hands out copies', () => {
  const store = new MemoryStore({ clock: new FakeClock(NOON) });
  one(store, { rule: rule({ algorithm: 'fixed-window' }), subject: alice, operation: consume(3) });
  const [{ cell }] = store.inspect(alice.hash) as unknown as [{ cell: { counters: { state: number[] }[] } }];
  cell.counters[0]!.state[1] = 0;
  cell.counters.length = 0;
  expect(
    one(store, { rule: rule({ algorithm: 'fixed-window' }), subject: alice, operation: peek(1) }).remaining,
  ).toBe(7);
});

describe('the default store', () => {
  test('is one per process, also for a second copy of the library', async () => {
    const store = defaultMemoryStore();
    expect(defaultMemoryStore()).toBe(store);
    let copy: unknown;
    await jest.isolateModulesAsync(async () => {
      const other = await import('../../../src/stores/memory/default-store.js');
      expect(other.defaultMemoryStore).not.toBe(defaultMemoryStore);
      copy = other.defaultMemoryStore();
    });
    expect(copy).toBe(store);
  });

  test('counts in this process alone, and says so', () => {
    expect(defaultMemoryStore().perProcess).toBe(true);
  });
});
