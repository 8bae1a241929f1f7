import { Redis } from 'ioredis';
import { RedisStore } from '../../src/stores/redis/index.js';
import { MOST_PER_CALL } from '../../src/stores/redis/batcher.js';
import { stage } from '../support/redis/stage.js';
import { consume, rule, subject } from '../support/subjects.js';
import { applyBatch } from '../../src/testing/batch.js';
import type { Batch, BatchResult } from '../../src/testing/batch.js';

const { onEnd, server } = stage();

const hourly = rule({ limit: 1000, windowSec: 3600 });
const once = (name: string): Batch => [{ rule: hourly, subject: subject(name), operation: consume(1) }];

/** A store on one server, and the commands that it has put on their way. */
async function counted(options: { readonly batching?: boolean } = {}) {
  const redis = await server();
  const client = new Redis(redis.port);
  onEnd(() => {
    client.disconnect();
  });
  const store = new RedisStore({ client, ...options });
  // The script is known from now on, and a first decision has been answered.
  await applyBatch(store, once('first'));
  let sent = 0;
  const { sendCommand } = client;
  client.sendCommand = (...args) => {
    sent += 1;
    return sendCommand.apply(client, args);
  };
  const ask = (batch: Batch): Promise<BatchResult> => Promise.resolve(applyBatch(store, batch));
  return { client, ask, sent: () => sent };
}

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

test('decisions that are asked for together travel in one command, each decided on its own', async () => {
  const { ask, sent } = await counted();
  const names = ['a', 'b', 'a', 'c', 'a'];
  const results = await Promise.all(names.map(name => ask(once(name))));
  expect(sent()).toBe(1);
  expect(results.map(({ readings }) => readings[0]?.remaining)).toEqual([999, 999, 998, 999, 997]);
});

test('at most 128 in one', async () => {
  const { ask, sent } = await counted();
  await Promise.all(Array.from({ length: 2 * MOST_PER_CALL + 1 }, () => ask(once('a'))));
  expect(sent()).toBe(3);
});

test('one after the other does not wait for the rest of the turn', async () => {
  const { ask, sent } = await counted();
  for (const [i, name] of ['a', 'b', 'c'].entries()) {
    let turns = 0;
    const turning = turn().then(() => (turns += 1));
    const result = ask(once(name));
    await Promise.resolve();
    await Promise.resolve();
    expect({ sent: sent(), turns }).toEqual({ sent: i + 1, turns: 0 });
    await result;
    await turning;
  }
});

test('while a command is under way, all that one turn asks for travels together', async () => {
  const { ask, sent } = await counted();
  const results = [ask(once('a'))];
  await Promise.resolve();
  await Promise.resolve();
  expect(sent()).toBe(1);
  // Each in a tick of its own, as requests on different sockets are.
  for (const name of ['b', 'c', 'd']) {
    results.push(ask(once(name)));
    await Promise.resolve();
  }
  expect(sent()).toBe(1);
  await Promise.all(results);
  expect(sent()).toBe(2);
});

test('a process that was busy collects a whole turn again, also when nothing is under way', async () => {
  const { ask, sent } = await counted();
  await Promise.all([ask(once('a')), ask(once('b'))]);
  const results: Promise<BatchResult>[] = [];
  for (const name of ['c', 'd', 'e']) {
    results.push(ask(once(name)));
    await Promise.resolve();
    await Promise.resolve();
  }
  await Promise.all(results);
  expect(sent()).toBe(2);
});

test.each([
  [
    'a decision',
    () => [{ ...once('a')[0]!, rule: { ...hourly, algorithm: 'none' as never } }],
    /script failed/,
  ],
  ['a command', () => once('a'), /refused/],
])('%s that failed is no longer under way', async (what, batch, message) => {
  const { client, ask, sent } = await counted();
  const { sendCommand } = client;
  if (what === 'a command') client.sendCommand = () => Promise.reject(new Error('refused'));
  await expect(ask(batch())).rejects.toThrow(message);
  client.sendCommand = sendCommand;
  const before = sent();
  const result = ask(once('b'));
  await Promise.resolve();
  await Promise.resolve();
  expect(sent()).toBe(before + 1);
  await result;
});

test('without batching every decision is a command of its own, at once', async () => {
  const { ask, sent } = await counted({ batching: false });
  const results = ['a', 'b', 'c'].map(name => ask(once(name)));
  expect(sent()).toBe(3);
  await Promise.all(results);
});
