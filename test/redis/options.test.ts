import { Redis as Upstash } from '@upstash/redis';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { RedisStore } from '../../src/stores/redis/index.js';
import type { RedisStoreOptions } from '../../src/stores/redis/index.js';
import { startRedis } from '../support/redis/server.js';

jest.setTimeout(30_000);

const upstash = new Upstash({ url: 'http://127.0.0.1:1', token: 'a' });
const lazy = new Redis({ lazyConnect: true });

describe('options that are wrong are refused at construction, by name and with what came', () => {
  it.each<[string, object, RegExp, string]>([
    ['no client', {}, /client must be a client of ioredis.*got undefined/, 'client'],
    ['its options', { client: { host: 'localhost' } }, /none of these. Pass the client itself/, 'client'],
    ['an address', { client: 'redis://localhost' }, /client must be .* got a string/, 'client'],
    ['a pipeline', { client: lazy.pipeline() }, /client must be/, 'client'],
    ['a client without eval', { client: { get: () => null, set: () => null } }, /none of these/, 'client'],
    ['an old client', { client: { send_command: () => null } }, /older client/, 'client'],
    ['a prefix with braces', { client: lazy, prefix: '{x}' }, /prefix must have 1 to 64 letters/, 'prefix'],
    ['a prefix with a wildcard', { client: lazy, prefix: 'a*' }, /got the string "a\*"/, 'prefix'],
    ['a prefix that is no text', { client: lazy, prefix: 5 }, /prefix must be a string, got 5/, 'prefix'],
    ['a fraction', { client: lazy, denyCacheMs: 0.5 }, /denyCacheMs must be a whole number/, 'denyCacheMs'],
    ['an hour', { client: lazy, denyCacheMs: 3_600_000 }, /denyCacheMs must be at most 60000/, 'denyCacheMs'],
    ['a text', { client: lazy, batching: 'no' }, /batching must be true or false/, 'batching'],
    ['a function', { client: lazy, clock: Date.now }, /clock must have a method now/, 'clock'],
    ['the client itself', lazy, /a client\. Write new RedisStore\(\{ client \}\)/, 'client'],
    ['one of node-redis', createClient(), /a client\. Write new RedisStore\(\{ client \}\)/, 'client'],
    ['one of Upstash', upstash, /a client\. Write new RedisStore\(\{ client \}\)/, 'client'],
    ['its name elsewhere', { redis: lazy }, /"redis".*Did you mean client, which/, 'redis'],
    ['a function', { sendCommand: () => null }, /"sendCommand".*Did you mean client, which/, 'sendCommand'],
    ['a url', { url: 'redis://a:secret@b' }, /Did you mean client, e\.g\. client: new Redis\(url\)/, 'url'],
    ['a keyPrefix', { client: lazy, keyPrefix: 'a' }, /"keyPrefix".*Did you mean prefix\?/, 'keyPrefix'],
    ['a misspelt name', { client: lazy, prefx: 'a' }, /unknown option "prefx".*Did you mean prefix/, 'prefx'],
  ])('%s', (_, options, message, option) => {
    expect(() => new RedisStore(options as RedisStoreOptions)).toThrow(message);
    expect(() => new RedisStore(options as RedisStoreOptions)).toThrow(
      expect.objectContaining({ option, code: expect.stringMatching(/^ERR_LIMITKEEPER_/) }),
    );
  });

  it('an address in place of the options, of which nothing is told', () => {
    const url = 'redis://:hunter2@localhost';
    expect(() => new RedisStore(url as never)).toThrow(/a string\. Make a client.*client: new Redis\(url\)/);
    expect(() => new RedisStore(url as never)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
    );
  });

  it.each([false, true])('a client that has been closed (an earlier store on it: %s)', async hasStore => {
    const redis = await startRedis();
    const ioredis = new Redis(redis.port);
    await ioredis.ping();
    const node = createClient({ socket: { host: '127.0.0.1', port: redis.port } });
    await node.connect();
    const stores = hasStore ? [ioredis, node].map(client => new RedisStore({ client })) : [];
    ioredis.disconnect();
    await new Promise(resolve => ioredis.once('end', resolve));
    node.destroy();
    for (const client of [ioredis, node]) {
      expect(() => new RedisStore({ client })).toThrow(/got one that has been closed/);
    }
    await Promise.all(stores.map(store => store.close()));
    await redis.stop();
  });
});
