// Heap and buffers that a subject takes: a store filled in a fresh process, weighed after garbage collection.
import assert from 'node:assert/strict';
import { stores } from '../contenders/stores.mjs';
import { inChild } from '../measure/child.mjs';
import { median } from '../measure/median.mjs';
import { target } from '../report/target.mjs';

const HOUR = 3600;
const FEW = 10_000;
const BLOCKS = 100_000;
const WARM = 1000;

const subject = i => `81.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

export default async function bytes(scale) {
  if (scale.alone !== undefined) return weigh(scale.alone);
  const many = scale.million;
  const each = async (name, count, kind) => {
    const weights = [];
    for (let i = 0; i < (scale.quick ? 1 : 3); i += 1) {
      weights.push(
        await inChild(new URL(import.meta.url), { alone: { name, count, kind } }, ['--expose-gc']),
      );
    }
    return median(weights);
  };
  const rows = [];
  for (const [name, { own }] of Object.entries(stores)) {
    const row = { name, own, few: await each(name, FEW, 'count'), many: await each(name, many, 'count') };
    if (own) {
      row.targets = [
        target(row.few, 140, `bytes at ${FEW.toLocaleString('en')}`),
        target(row.many, 100, `bytes at ${many.toLocaleString('en')}`),
      ];
    }
    rows.push(row);
  }
  rows.push({
    name: `limitkeeper, a block of a subject of two parts, of ${BLOCKS.toLocaleString('en')}`,
    own: true,
    many: await each('limitkeeper', BLOCKS, 'block'),
  });
  return {
    title: 'Bytes a subject',
    note: 'Heap and buffers, by the number of subjects that were counted once.',
    columns: [
      { key: 'few', label: FEW.toLocaleString('en'), digits: 0 },
      { key: 'many', label: many.toLocaleString('en'), digits: 0 },
    ],
    rows,
  };
}

async function weigh({ name, count, kind }) {
  const { open } = stores[name];
  const checked = open(WARM, HOUR);
  for (let i = 1; i <= 6; i += 1) assert.equal(await checked.count('192.0.2.1'), i, name);
  // The code and the library's own tables are there before anything is weighed.
  await fill(open(WARM, HOUR), WARM, kind);
  await fill(open(WARM, HOUR), WARM, kind);
  const before = weight();
  const store = open(count, HOUR);
  await fill(store, count, kind);
  const each = (weight() - before) / count;
  if (store.size !== undefined) assert.equal(store.size(), count, `${name}: subjects kept`);
  assert.equal(await store.count(kind === 'count' ? subject(0) : 'somebody'), kind === 'count' ? 2 : 1);
  return each;
}

async function fill(store, count, kind) {
  for (let i = 0; i < count; i += 1) {
    if (kind === 'count') await store.count(subject(i));
    else await store.block([`account ${i}`, '203.0.113.7']);
  }
}

function weight() {
  for (let i = 0; i < 4; i += 1) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
