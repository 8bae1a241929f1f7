import * as five from 'ioredis';
import * as six from 'ioredis6';
import { createClient } from 'redis';
import { createLimiter } from '../../src/index.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { stage } from '../support/redis/stage.js';

jest.setTimeout(30_000);
const { onEnd, server } = stage();

const limiterOver = (client: object) => {
  const store = new RedisStore({ client, denyCacheMs: 0 });
  const limiter = createLimiter({
    scope: 'a',
    limit: 10,
    windowSec: 60,
    algorithm: 'fixed-window',
    store,
    storeTimeoutMs: 2_000,
  });
  const messages: string[] = [];
  limiter.on('store-error', ({ error }) => messages.push(error.message));
  return { store, limiter, messages };
};

const IOREDIS: [string, new (options: object) => five.Redis][] = [
  ['ioredis 5', five.Redis],
  ['ioredis 6', six.Redis as unknown as new (options: object) => five.Redis],
];

describe.each(IOREDIS)('R4: %s', (_, Client) => {
  async function shared(options: object = {}) {
    const client = new Client({ port: (await server()).port, ...options });
    client.on('error', () => {});
    onEnd(() => {
      client.disconnect();
    });
    await client.ping();
    return { client, ...limiterOver(client) };
  }

  it('inside a MULTI by hand a decision fails alone', async () => {
    const { client, limiter, messages } = await shared();
    await limiter.consume('alice');
    await client.multi({ pipeline: false });
    await client.set('foo', '1');
    expect((await limiter.consume('alice')).degraded).toBe('open');
    expect(messages).toEqual([expect.stringContaining('give the store a client of its own')]);
    const ended = client.exec();
    // Behind EXEC on the same connection.
    expect((await limiter.consume('alice')).remaining).toBe(8);
    expect(await ended).toHaveLength(1);

    await client.multi({ pipeline: false });
    await client.discard();
    expect((await limiter.consume('alice')).remaining).toBe(7);
    // Its own pipelines are no reason to fail.
    const pipelined = client.multi().set('foo', '2').exec();
    expect((await limiter.consume('alice')).remaining).toBe(6);
    expect(await pipelined).toHaveLength(1);
  });

  it('a MULTI that is lost with its connection holds nobody up', async () => {
    const { client, limiter } = await shared();
    await client.multi({ pipeline: false });
    client.disconnect(true);
    await new Promise(resolve => client.once('ready', resolve));
    expect((await limiter.consume('alice')).degraded).toBeUndefined();
  });

  it('a MULTI that nobody could have seen is told of', async () => {
    const { client, store, limiter, messages } = await shared();
    await client.call('MULTI');
    expect((await limiter.consume('alice')).degraded).toBe('open');
    expect(messages).toEqual([expect.stringContaining('is inside a MULTI')]);
    await expect(store.inspect('a1'.repeat(32))).rejects.toThrow('give the store a client of its own');
  });

  it('is left as it was found', async () => {
    const { client, store } = await shared();
    expect(Object.hasOwn(client, 'multi')).toBe(true);
    await store.close();
    for (const name of ['multi', 'exec', 'discard']) expect(Object.hasOwn(client, name)).toBe(false);
  });

  it('subscribed and unsubscribed', async () => {
    const { client, limiter } = await shared();
    await limiter.consume('alice');
    await client.subscribe('news');
    await limiter.consume('alice');
    await client.unsubscribe('news');
    expect((await limiter.consume('alice')).degraded).toBeUndefined();
    expect(await client.get('foo')).toBeNull();
  });

  it('subscribed where that takes the connection: the error says what to do', async () => {
    const { client, limiter, messages } = await shared({ protocol: 2 });
    await client.subscribe('news');
    expect((await limiter.consume('alice')).degraded).toBe('open');
    expect(messages).toEqual([
      expect.stringMatching(/the client is subscribed.*give the store a client of its own/),
    ]);
  });

  it('one that monitors is refused', async () => {
    const { client } = await shared();
    const monitor = await client.monitor();
    onEnd(() => {
      monitor.disconnect();
    });
    expect(() => new RedisStore({ client: monitor })).toThrow(/client must be .*, got one that monitors/);
  });
});

describe.each([2, 3] as const)('R4: node-redis, RESP %i', RESP => {
  async function shared() {
    const client = createClient({ socket: { host: '127.0.0.1', port: (await server()).port }, RESP });
    const errors: unknown[] = [];
    client.on('error', error => errors.push(error));
    onEnd(() => {
      client.destroy();
    });
    await client.connect();
    return { client, errors, ...limiterOver(client) };
  }

  it("subscribed and unsubscribed: the application's own commands are answered", async () => {
    const { client, errors, store, limiter } = await shared();
    await limiter.consume('alice');
    await client.subscribe('news', () => {});
    const during = await limiter.consume('alice');
    await client.unsubscribe('news');
    expect((await limiter.consume('alice')).degraded).toBeUndefined();
    expect(await client.get('foo')).toBeNull();
    await limiter.block('bob', 60);
    expect((await store.blocked()).blocks).toHaveLength(1);
    expect(await limiter.inspect('bob')).toHaveLength(1);
    expect((await limiter.reset('bob')).remaining).toBe(10);
    await store.clear();
    expect((await store.blocked()).blocks).toEqual([]);
    await client.set('foo', 'bar');
    // Under RESP 2 as bytes from now on, whoever else uses the client.
    expect(String(await client.get('foo'))).toBe('bar');
    expect(errors).toEqual([]);
    expect(during.degraded).toBe(RESP === 2 ? 'open' : undefined);
  });

  it('a transaction of its own, and a MULTI by hand', async () => {
    const { client, limiter, messages } = await shared();
    const transaction = client.multi().set('foo', '1').exec();
    expect((await limiter.consume('alice')).remaining).toBe(9);
    expect(await transaction).toHaveLength(1);
    await client.sendCommand(['MULTI']);
    expect((await limiter.consume('alice')).degraded).toBe('open');
    expect(messages).toEqual([expect.stringContaining('is inside a MULTI')]);
  });
});

it('R4: what node-redis offers beside its clients is refused', async () => {
  const client = createClient({ socket: { host: '127.0.0.1', port: (await server()).port } });
  client.on('error', () => {});
  expect(() => new RedisStore({ client: client.legacy() })).toThrow(/client must be/);
  expect(() => new RedisStore({ client: client.multi() })).toThrow(/client must be/);
});
