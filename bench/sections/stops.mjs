import assert from 'node:assert/strict';
import { stores } from '../contenders/stores.mjs';
import { inChild } from '../measure/child.mjs';
import { median } from '../measure/median.mjs';
import { longestStop } from '../measure/stop.mjs';
import { target } from '../report/target.mjs';

const HOUR = 3600;
const AT_MOST_MS = 10;
const KINDS = ['still', 'coming', 'full', 'over'];

const subject = i => `81.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
const known = i => subject(i % 1000);

export default async function stops(scale) {
  if (scale.alone !== undefined) return scale.alone === 'limitkeeper' ? own(scale) : other(scale);
  const rows = [];
  for (const name of Object.keys(stores)) {
    const runs = [];
    for (let i = 0; i < (scale.quick ? 1 : 5); i += 1) {
      runs.push(await inChild(new URL(import.meta.url), { ...scale, alone: name }, ['--expose-gc']));
    }
    const row = { name, own: stores[name].own };
    for (const kind of KINDS) {
      const values = runs.map(run => run[kind]).filter(value => value !== undefined);
      if (values.length > 0) row[kind] = median(values);
    }
    if (row.own) {
      row.targets = ['coming', 'full', 'over'].map(kind => target(row[kind], AT_MOST_MS, LABELS[kind]));
    }
    rows.push(row);
  }
  const many = scale.million.toLocaleString('en');
  return {
    title: `The longest stop, with ${many} subjects`,
    note:
      'The longest time, in ms, in which nothing else could run, garbage collection included. “Known” is the machine: 1,000 ' +
      'subjects come again. Those who arrive at a full store drive others out; two have a bound. What is over is let go ' +
      'by the calls that follow, or by timers.',
    columns: [
      { key: 'still', label: 'known', digits: 1 },
      { key: 'coming', label: 'arriving', digits: 1 },
      { key: 'full', label: 'arriving, full', digits: 1 },
      { key: 'over', label: 'expiring', digits: 1 },
    ],
    rows,
  };
}

const LABELS = { coming: 'ms arriving', full: 'ms arriving, full', over: 'ms expiring' };

async function still(name) {
  const store = stores[name].open(1_000_000, HOUR);
  await longestStop(i => store.count(known(i)), 20_000);
  globalThis.gc();
  return longestStop(i => store.count(known(i)), 200_000);
}

async function own({ alone: name, million }) {
  let now = 1e12;
  const store = stores[name].open(million, HOUR, { now: () => now });
  const result = { still: await still(name) };
  globalThis.gc();
  result.coming = await longestStop(i => store.count(subject(i)), million);
  result.full = await longestStop(i => store.count(subject(million + i)), million);
  assert.equal(store.size(), million);
  now += 2 * HOUR * 1000;
  result.over = await longestStop(i => store.count(known(i)), million);
  assert(store.size() <= 2000, `${store.size()} left`);
  return result;
}

/** Windows of an hour while they arrive; where the library lets a short one be had, all end at once. */
async function other({ alone: name, million, quick }) {
  const result = { still: await still(name) };
  const windowSec = quick ? 5 : 40;
  const store = stores[name].open(million, windowSec);
  globalThis.gc();
  const start = Date.now();
  result.coming = await longestStop(i => store.count(subject(i)), million);
  if (name === '@fastify/rate-limit') {
    result.full = await longestStop(i => store.count(subject(million + i)), million);
  }
  // Through a middleware of its own the window is an hour.
  if (name !== 'rate-limiter-flexible') return result;
  const gone = () => Date.now() - start > (2 * windowSec + 1) * 1000;
  result.over = await longestStop(i => store.count(known(i)), Infinity, gone);
  return result;
}
