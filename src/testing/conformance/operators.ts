import { applyBatch } from '../batch.js';
import { strict as assert } from 'node:assert';
import type { BlockEntry, Store } from '../../core/store.js';
import { hashSubject, subjectHash, subjectOfHash } from '../../core/subject.js';
import { ALICE, BOB, expectReading, rule, subject } from './world.js';
import type { Clause, World } from './world.js';

export const operatorClauses: readonly Clause[] = [
  {
    promise: 'inspect shows all cells of a subject, of that subject only, and writes nothing',
    async check(world) {
      assert.deepEqual(await world.store.inspect(ALICE.hash), []);
      await world.consume(rule({ scope: 'a' }), 2);
      await world.consume(rule({ scope: 'a', windowSec: 7200 }), 1);
      await world.block(rule({ scope: 'b' }), 60_000);
      await world.consume(rule({ scope: 'c' }), 1, BOB);
      const cells = await world.store.inspect(ALICE.hash);
      const shown = cells.map(({ scope, cell }) => [scope, cell.counters.length, cell.block?.manual]);
      assert.deepEqual(shown.sort(), [
        ['a', 2, undefined],
        ['b', 0, true],
      ]);
      expectReading(await world.peek(rule({ scope: 'a' })), { remaining: 1 });
    },
  },
  {
    promise: 'what inspect shows is plain data that survives JSON, and changing it changes nothing',
    async check(world) {
      await world.reserve(rule({ algorithm: 'sliding-window', blockSec: [60, 300] }), 1);
      await world.charge(rule({ algorithm: 'sliding-window', blockSec: [60, 300] }), 3);
      const [stored] = await world.store.inspect(ALICE.hash);
      assert.ok(stored);
      assert.deepEqual(JSON.parse(JSON.stringify(stored)), stored);
      assert.equal(typeof stored.cell.v, 'number', 'a cell carries the version of its format');
      const { counters } = stored.cell as unknown as { counters: { holds: number[]; state: number[] }[] };
      for (const counter of counters) {
        counter.holds.length = 0;
        counter.state.fill(0);
      }
      const [again] = await world.store.inspect(ALICE.hash);
      assert.ok(again?.cell.counters[0]?.state?.some(value => value > 0));
    },
  },
  {
    promise: 'reset forgets a subject in one scope or in all, and answers what it removed',
    async check(world) {
      for (const scope of ['a', 'b', 'c']) await world.consume(rule({ scope }));
      await world.consume(rule({ scope: 'a' }), 1, BOB);
      assert.deepEqual(
        (await world.store.reset(ALICE.hash, 'b')).map(cell => cell.scope),
        ['b'],
      );
      assert.deepEqual(await world.store.reset(ALICE.hash, 'b'), []);
      expectReading(await world.peek(rule({ scope: 'a' })), { remaining: 2 });
      expectReading(await world.peek(rule({ scope: 'b' })), { remaining: 3 });
      assert.deepEqual((await world.store.reset(ALICE.hash)).map(cell => cell.scope).sort(), ['a', 'c']);
      assert.deepEqual(await world.store.inspect(ALICE.hash), []);
      expectReading(await world.peek(rule({ scope: 'a' }), 1, BOB), { remaining: 2 });
    },
  },
  {
    promise: 'what is over is shown no more',
    needs: ['clock'],
    async check(world) {
      await world.consume(rule({ windowSec: 60 }));
      await world.block(rule({ scope: 'b' }), 60_000);
      world.clock.advance(60_000);
      assert.deepEqual(await world.store.inspect(ALICE.hash), []);
      assert.deepEqual(await world.store.reset(ALICE.hash), []);
    },
  },
  {
    promise: 'blocked lists each standing block once, with when it began and ends',
    needs: ['blocked'],
    async check(world) {
      assert.deepEqual(await blocked(world), []);
      const counted = rule({ scope: 'auto', limit: 1, blockSec: 3600 });
      await world.consume(counted);
      const { at } = await applyBatch(world.store, [
        { rule: counted, subject: ALICE, operation: { type: 'consume', cost: 1 } },
      ]);
      await world.block(rule({ scope: 'by hand' }), null, BOB);
      const blocks = await blocked(world);
      const found = blocks.find(block => block.subjectHash === ALICE.hash);
      assert.deepEqual(
        { ...found },
        { subjectHash: ALICE.hash, scope: 'auto', since: at, until: at + 3_600_000, manual: false },
      );
      const forEver = blocks.find(block => block.subjectHash === BOB.hash);
      assert.deepEqual([forEver?.scope, forEver?.until, forEver?.manual], ['by hand', null, true]);
      assert.equal(blocks.length, 2);
    },
  },
  {
    promise: 'a block that ended, was lifted, forgiven or reset is listed no more',
    needs: ['blocked'],
    async check(world) {
      const counted = rule({ limit: 1, blockSec: 3600 });
      const names = ['lifted', 'forgiven', 'reset', 'removed', 'stays'];
      for (const name of names) await world.charge(counted, 1, subject(name));
      assert.equal((await blocked(world)).length, 5);
      await world.decide(counted, { type: 'unblock' }, subject('lifted'));
      await world.decide(counted, { type: 'forgive' }, subject('forgiven'));
      await world.decide(counted, { type: 'reset' }, subject('reset'));
      await world.store.reset(subject('removed').hash);
      const blocks = await blocked(world);
      assert.deepEqual(
        blocks.map(block => block.subjectHash),
        [subject('stays').hash],
      );
    },
  },
  {
    promise: 'a block that ran out is listed no more',
    needs: ['blocked', 'clock'],
    async check(world) {
      await world.block(rule(), 60_000);
      await world.block(rule(), 120_000, BOB);
      world.clock.advance(60_000);
      assert.deepEqual(
        (await blocked(world)).map(block => block.subjectHash),
        [BOB.hash],
      );
    },
  },
  {
    promise: 'pages of blocks together hold every block once',
    needs: ['blocked'],
    async check(world) {
      const names = Array.from({ length: 25 }, (_, i) => `blocked ${String(i)}`);
      for (const name of names) await world.block(rule(), 3_600_000, subject(name));
      const pages = await allPages(world.store, { count: 4 });
      for (const page of pages) assert.ok(page.length <= 4, `a page of ${String(page.length)}`);
      const hashes = pages.flat().map(block => block.subjectHash);
      assert.deepEqual(hashes.sort(), names.map(name => subject(name).hash).sort());
    },
  },
  {
    promise: 'paging skips nobody when other blocks end meanwhile',
    needs: ['blocked'],
    async check(world) {
      const names = Array.from({ length: 12 }, (_, i) => `blocked ${String(i)}`);
      for (const name of names) await world.block(rule(), 3_600_000, subject(name));
      const first = await world.store.blocked({ count: 5 });
      assert.ok(first.cursor, 'more blocks than fit have a cursor');
      const seen = new Set(first.blocks.map(block => block.subjectHash));
      for (const { subjectHash: hash } of first.blocks.slice(0, 3)) await world.store.reset(hash);
      for (let cursor: string | undefined = first.cursor; cursor !== undefined;) {
        const page = await world.store.blocked({ count: 5, cursor });
        for (const block of page.blocks) seen.add(block.subjectHash);
        cursor = page.cursor;
      }
      assert.equal(seen.size, 12);
    },
  },
  {
    promise: 'blocks are found by one part of the subject',
    needs: ['blocked', 'parts'],
    async check(world) {
      const address = '203.0.113.7';
      const counted = rule({ limit: 1, blockSec: 3600 });
      const mail = (name: string) => hashSubject([`${name}@example.org`, address], {});
      await world.charge(counted, 1, mail('a'));
      await world.charge(counted, 1, mail('b'));
      await world.charge(counted, 1, hashSubject(['c@example.org', '203.0.113.8'], {}));
      await world.charge(counted, 1, hashSubject(address, {}));
      const found = (await allPages(world.store, { part: subjectHash(address), count: 2 })).flat();
      const expected = [mail('a').hash, mail('b').hash, subjectHash(address)];
      assert.deepEqual(found.map(block => block.subjectHash).sort(), expected.sort());
      assert.deepEqual(await blocked(world, subjectHash('nobody')), []);
      // Blocked anew by an operator who knows the hash only.
      await world.block(counted, null, subjectOfHash(mail('a').hash));
      const again = await blocked(world, subjectHash('a@example.org'));
      assert.deepEqual(
        again.map(block => block.until),
        [null],
      );
    },
  },
  {
    promise: 'clear forgets the scopes named, or everything',
    async check(world) {
      for (const scope of ['a', 'b', 'c']) await world.consume(rule({ scope }));
      await world.block(rule({ scope: 'b' }), null, BOB);
      await world.store.clear(['a', 'b']);
      assert.deepEqual(
        (await world.store.inspect(ALICE.hash)).map(cell => cell.scope),
        ['c'],
      );
      expectReading(await world.consume(rule({ scope: 'b' }), 1, BOB), { allowed: true });
      await world.store.clear([]);
      expectReading(await world.peek(rule({ scope: 'c' })), { remaining: 2 });
      await world.store.clear();
      assert.deepEqual(await world.store.inspect(ALICE.hash), []);
      expectReading(await world.peek(rule({ scope: 'b' }), 1, BOB), { remaining: 3 });
    },
  },
  {
    promise: 'clear ends every block in the list',
    needs: ['blocked'],
    async check(world) {
      await world.block(rule(), null);
      await world.block(rule({ scope: 'b' }), null);
      await world.store.clear(['b']);
      assert.deepEqual(
        (await blocked(world)).map(block => block.scope),
        ['a'],
      );
      await world.store.clear();
      assert.deepEqual(await blocked(world), []);
    },
  },
  {
    promise: 'close may be called twice',
    async check(world) {
      await world.consume(rule());
      await world.store.close();
      await world.store.close();
    },
  },
];

/** Everybody who is blocked, of one part or of all. A store may split them into pages as it likes. */
async function blocked({ store }: World, part?: string): Promise<readonly BlockEntry[]> {
  return (await allPages(store, { count: 100, ...(part === undefined ? {} : { part }) })).flat();
}

async function allPages(
  store: Store,
  query: { readonly count: number; readonly part?: string },
): Promise<(readonly BlockEntry[])[]> {
  const pages: (readonly BlockEntry[])[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.blocked({ ...query, ...(cursor === undefined ? {} : { cursor }) });
    pages.push(page.blocks);
    cursor = page.cursor;
    assert.ok(pages.length < 1000, 'paging does not end');
  } while (cursor !== undefined);
  return pages;
}
