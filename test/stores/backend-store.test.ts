import { backendStore } from '../../src/stores/backend-store.js';
import type { Backend, Write } from '../../src/core/store.js';
import { subjectOfHash } from '../../src/core/subject.js';
import { FakeClock } from '../../src/testing/index.js';
import { NOON } from '../support/decisions.js';
import { JsonBackend } from '../support/json-backend.js';
import { consume, peek, rule, subject } from '../support/subjects.js';
import { applyBatch } from '../../src/testing/batch.js';

const alice = subject('alice@example.org', '203.0.113.7');
const item = (operation = consume(1), counted = rule()) => ({ rule: counted, subject: alice, operation });

test('a transaction that must be repeated counts once', async () => {
  const backend = new JsonBackend(new FakeClock(NOON));
  const store = backendStore(backend);
  await Promise.all(Array.from({ length: 8 }, async () => applyBatch(store, [item()])));
  expect(backend.repeats).toBeGreaterThan(0);
  expect((await applyBatch(store, [item(peek(1))])).readings[0]).toMatchObject({ remaining: 2 });
});

test('an error of the backend reaches the caller, and nothing is tried again', async () => {
  let calls = 0;
  const broken = new JsonBackend(new FakeClock(NOON));
  broken.transact = async () => {
    calls += 1;
    throw new Error('no connection');
  };
  await expect(applyBatch(backendStore(broken), [item()])).rejects.toThrow('no connection');
  expect(calls).toBe(1);
});

test('a backend without a list of blocks says that it tells nobody', async () => {
  const backend: Backend = new JsonBackend(new FakeClock(NOON));
  const { transact, list, now, clear, close } = backend;
  const plain: Backend = {
    transact: transact.bind(backend),
    list: list.bind(backend),
    now: now.bind(backend),
    clear: clear.bind(backend),
    close: close.bind(backend),
  };
  expect(await backendStore(plain).blocked()).toEqual({ blocks: [], unlisted: true });
});

describe('what is written', () => {
  /** The writes of one operation after those of `before`. */
  async function writes(counted = rule(), operations = [consume(1)], who = alice): Promise<Write[][]> {
    const seen: Write[][] = [];
    const backend = new JsonBackend(new FakeClock(NOON));
    const store = backendStore({
      transact: (keys, body) =>
        backend.transact(keys, (cells, now) => {
          const transaction = body(cells, now);
          seen.push([...transaction.writes]);
          return transaction;
        }),
      list: hash => backend.list(hash),
      now: () => backend.now(),
      clear: scopes => backend.clear(scopes),
      close: () => backend.close(),
    });
    for (const operation of operations) await applyBatch(store, [{ rule: counted, subject: who, operation }]);
    return seen;
  }

  test('a look and a refusal without a block write nothing', async () => {
    expect(await writes(rule({ limit: 1 }), [peek(1), consume(1), consume(1)])).toEqual([
      [],
      [expect.anything()],
      [],
    ]);
  });

  test('the time from which the cell may be dropped', async () => {
    const [[first]] = (await writes(rule({ algorithm: 'fixed-window' }))) as [[Write]];
    expect(first.forgettableAt).toBe(NOON + 60_000);
    const [[forEver]] = (await writes(rule(), [{ type: 'block', ms: null }])) as [[Write]];
    expect(forEver.forgettableAt).toBe(Infinity);
    const strikes = await writes(rule({ limit: 1, blockSec: [60, 300] }), [{ type: 'charge', units: 1 }]);
    expect(strikes[0]![0]!.forgettableAt).toBe(NOON + 60_000 + 86_400_000);
  });

  test('a cell that says nothing any more is deleted', async () => {
    const [, second] = await writes(rule(), [consume(1), { type: 'reset' }]);
    expect(second).toEqual([expect.objectContaining({ cell: undefined })]);
  });

  test('part hashes come with a block that begins, and only then', async () => {
    const counted = rule({ limit: 2, blockSec: 60 });
    const seen = await writes(counted, [
      consume(1),
      { type: 'charge', units: 1 },
      { type: 'charge', units: 1 },
    ]);
    expect(seen.map(([write]) => write?.partHashes)).toEqual([
      undefined,
      [subject('alice@example.org').hash, subject('203.0.113.7').hash],
      undefined,
    ]);
  });

  test('a subject of which only the hash is known is its own only part', async () => {
    const bob = subjectOfHash(subject('bob').hash);
    const seen = await writes(
      rule(),
      [
        { type: 'block', ms: 1000 },
        { type: 'block', ms: null },
      ],
      bob,
    );
    expect(seen.map(([write]) => write?.partHashes)).toEqual([[bob.hash], undefined]);
  });
});

describe('a cell in a form that nobody of this version wrote', () => {
  const counter = {
    algorithm: 'sliding-window',
    windowMs: 60_000,
    holds: [],
    until: NOON + 9e9,
    state: [NOON, 99, 0],
  };

  test.each([
    ['text', '"hello"'],
    ['null', 'null'],
    ['a newer version', JSON.stringify({ v: 2, counters: [counter] })],
    ['no counters', JSON.stringify({ v: 1 })],
    ['an unknown algorithm', JSON.stringify({ v: 1, counters: [{ ...counter, algorithm: 'toString' }] })],
    [
      'a state that is no number',
      JSON.stringify({ v: 1, counters: [{ ...counter, state: [NOON, 'x', 0] }] }),
    ],
    ['a negative state', JSON.stringify({ v: 1, counters: [{ ...counter, state: [NOON, -5, 0] }] })],
    ['no holds', JSON.stringify({ v: 1, counters: [{ ...counter, holds: undefined }] })],
    ['no end', JSON.stringify({ v: 1, counters: [{ ...counter, until: undefined }] })],
    ['half a block', JSON.stringify({ v: 1, counters: [], block: { until: null } })],
  ])('%s counts as absent and is overwritten', async (_, json) => {
    const backend = new JsonBackend(new FakeClock(NOON));
    const store = backendStore(backend);
    backend.overwrite({ scope: 's', subjectHash: alice.hash }, json);
    expect(await store.inspect(alice.hash)).toEqual([]);
    expect(await store.blocked()).toEqual({ blocks: [] });
    expect((await applyBatch(store, [item()])).readings[0]).toMatchObject({ allowed: true, remaining: 9 });
    expect((await applyBatch(store, [item()])).readings[0]).toMatchObject({ allowed: true, remaining: 8 });
  });

  test('the very form of this version is read', async () => {
    const backend = new JsonBackend(new FakeClock(NOON));
    backend.overwrite({ scope: 's', subjectHash: alice.hash }, JSON.stringify({ v: 1, counters: [counter] }));
    expect((await applyBatch(backendStore(backend), [item()])).readings[0]).toMatchObject({
      reason: 'limit',
    });
  });
});

test('a page of which no block stands any more is passed over', async () => {
  const clock = new FakeClock(NOON);
  const store = backendStore(new JsonBackend(clock));
  const hashes: string[] = [];
  for (let i = 0; i < 6; i += 1) hashes.push(subject(`s${String(i)}`).hash);
  hashes.sort();
  for (const [i, hash] of hashes.entries()) {
    const operation = { type: 'block', ms: i < 4 ? 1000 : 100_000 } as const;
    await applyBatch(store, [{ rule: rule(), subject: subjectOfHash(hash), operation }]);
  }
  clock.advance(1000);
  const page = await store.blocked({ count: 2 });
  expect(page.blocks.map(block => block.subjectHash)).toEqual(hashes.slice(4));
});

test('close closes the backend', async () => {
  const backend = new JsonBackend(new FakeClock(NOON));
  await backendStore(backend).close();
  expect(backend.closed).toBe(1);
});
