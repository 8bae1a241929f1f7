import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import { Sorted } from '../../../src/stores/memory/sorted.js';
import { runs } from '../../support/sequences.js';

interface Item {
  readonly key: number;
  readonly number: number;
}
const order = (a: Item, b: Item): number => (a.key === b.key ? a.number - b.number : a.key < b.key ? -1 : 1);
const key = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constant(Infinity));

test('keeps thousands in order, whatever comes and goes, as a list would that is sorted anew', () => {
  fc.assert(
    fc.property(fc.array(key, { minLength: 1, maxLength: 60 }), fc.nat(), fc.nat(2), (keys, seed, going) => {
      const sorted = new Sorted<Item>();
      let list: Item[] = [];
      let drawn = seed;
      for (let number = 1; number <= 3000; number += 1) {
        drawn = (drawn * 1103515245 + 12345) % 2 ** 31;
        const item = { key: keys[drawn % keys.length]!, number };
        sorted.add(item);
        list.push(item);
        if (drawn % 4 <= going && list.length > 1) {
          const [gone] = list.splice(drawn % list.length, 1);
          sorted.remove({ key: gone!.key, number: gone!.number });
        }
      }
      list = list.sort(order);
      assert.deepEqual(sorted.first, list[0]);
      assert.deepEqual([...sorted.after({ key: -1, number: 0 })], list);
      const middle = list[list.length >> 1]!;
      assert.deepEqual([...sorted.after(middle)], list.slice((list.length >> 1) + 1));
      assert.deepEqual([...sorted.after({ key: Infinity, number: 1e9 })], []);
      for (const item of list) sorted.remove(item);
      assert.equal(sorted.first, undefined);
      sorted.add(middle);
      assert.deepEqual([...sorted.after({ key: -1, number: 0 })], [middle]);
    }),
    runs(20),
  );
});
