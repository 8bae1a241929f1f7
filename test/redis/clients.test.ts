import { createHash } from 'node:crypto';
import { RuleTemplate } from '../../src/core/rule.js';
import { hashSubject } from '../../src/core/subject.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { portFor } from '../../src/stores/redis/clients/detect.js';
import { errorWord } from '../../src/stores/redis/port.js';
import type { RedisPort } from '../../src/stores/redis/port.js';
import type { OpenClient } from '../support/redis/clients.js';
import { compareWithDecide } from '../support/redis/compare.js';
import { startServers, TARGETS } from '../support/redis/targets.js';
import type { Servers } from '../support/redis/targets.js';
import { applyBatch } from '../../src/testing/batch.js';

jest.setTimeout(120_000);

let servers: Servers;

beforeAll(async () => {
  servers = await startServers();
});

afterAll(async () => {
  await servers.stop();
});

const sha = (text: string) => createHash('sha1').update(text).digest('hex');

describe.each(TARGETS)('the port for $name', ({ kind, open, name }) => {
  let opened: OpenClient;
  let port: RedisPort;
  const prefix = `port.${sha(name).slice(0, 8)}`;
  const key = `${prefix}:{a}`;

  beforeAll(async () => {
    opened = await open(servers);
    port = portFor(opened.client);
  });

  afterAll(() => {
    port.close();
    opened.close();
  });

  it('tells whether one server holds all keys', () => {
    expect(port.topology).toBe(kind === 'cluster' ? 'cluster' : 'single');
  });

  it('is ready once the client is', () => {
    expect(port.state()).toBe('ready');
    expect(port.state(key)).toBe('ready');
  });

  it('hands text out as text, numbers as numbers, lists as lists', async () => {
    await port.send(key, ['SET', key, 'é 1'], Infinity);
    expect(await port.send(key, ['GET', key], Infinity)).toBe('é 1');
    const text = "return {1, 4503599627370497, 'a', {2, {}, ':5'}}";
    expect(await port.send(key, ['EVAL', text, '1', key], Infinity)).toEqual([
      1,
      4_503_599_627_370_497,
      'a',
      [2, [], ':5'],
    ]);
  });

  it('rejects with the word that the server answered', async () => {
    const words = async (args: string[]) =>
      errorWord(await port.send(key, args, Infinity).catch((error: unknown) => error));
    expect(await words(['EVALSHA', sha('never loaded'), '1', key])).toBe('NOSCRIPT');
    expect(await words(['LPUSH', key, 'x'])).toBe('WRONGTYPE');
  });

  it('tells which node holds a key, the same each time', async () => {
    await port.send(key, ['GET', key], Infinity);
    expect(port.nodeOf(key)).toEqual(expect.any(String));
    expect(port.nodeOf(key)).toBe(port.nodeOf(key));
  });

  it('walks through the keys of all masters', async () => {
    const keys = Array.from({ length: 30 }, (_, i) => `${prefix}:walk:{${String(i)}}`);
    await Promise.all(keys.map(each => port.send(each, ['SET', each, '1'], Infinity)));
    const found: unknown[] = [];
    for (const master of await port.masters()) {
      const reply = await master(['SCAN', '0', 'MATCH', `${prefix}:walk:*`, 'COUNT', '100000']);
      found.push(...((reply as unknown[])[1] as unknown[]));
    }
    expect(found.sort()).toEqual(keys.sort());
  });

  it('makes a store that decides as decide() does', async () => {
    for (const subjects of [1, 2]) {
      await compareWithDecide({
        createStore: clock =>
          new RedisStore({ client: opened.client, prefix: `${prefix}.${String(subjects)}`, clock }),
        steps: 600,
        seed: 7,
        worlds: 20,
        subjects,
      });
    }
  });

  it('is read back by operators: inspect, blocked, reset, clear', async () => {
    const store = new RedisStore({ client: opened.client, prefix: `${prefix}.ops` });
    const rule = new RuleTemplate({ scope: '17', blockSec: 60 }).at({ limit: 1, windowSec: 60 });
    const other = new RuleTemplate({ scope: 'b' }).at({ limit: 1, windowSec: 60 });
    const subject = hashSubject(['alice', '203.0.113.7'], {});
    const consume = { type: 'consume', cost: 1 } as const;
    await applyBatch(store, [{ rule, subject, operation: consume }]);
    await applyBatch(store, [{ rule: other, subject, operation: consume }]);
    await applyBatch(store, [{ rule, subject, operation: consume }]);
    const cells = await store.inspect(subject.hash);
    expect(cells.map(({ scope }) => scope).sort()).toEqual(['17', 'b']);
    const [alice = ''] = subject.partHashes;
    const entry = expect.objectContaining({ subjectHash: subject.hash, scope: '17', manual: false });
    expect((await store.blocked()).blocks).toEqual([entry]);
    expect((await store.blocked({ part: alice })).blocks).toEqual([entry]);
    expect((await store.reset(subject.hash, '17')).map(({ scope }) => scope)).toEqual(['17']);
    expect((await store.blocked()).blocks).toEqual([]);
    expect((await store.inspect(subject.hash)).map(({ scope }) => scope)).toEqual(['b']);
    await store.clear();
    expect(await store.inspect(subject.hash)).toEqual([]);
    await store.close();
  });
});
