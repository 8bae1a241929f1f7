import { Redis as UpstashRedis } from '@upstash/redis';
import { Cluster, Redis } from 'ioredis';
import { startCluster } from '../../support/redis/cluster.js';
import { startProxy } from '../../support/redis/proxy.js';
import { startSentinel } from '../../support/redis/sentinel.js';
import { startRedis } from '../../support/redis/server.js';
import { stage } from '../../support/redis/stage.js';
import { upstashEndpoint } from '../../support/redis/upstash.js';

jest.setTimeout(60_000);
const { onEnd } = stage();

// The other tests of this folder believe what these helpers do to a server: here it is looked at.

describe('one server', () => {
  it('answers, is killed, and comes back empty on the same port', async () => {
    const redis = await startRedis();
    const { port, pid } = redis;
    await redis.call('SET', 'a', 1);
    await redis.kill();
    expect(redis.running).toBe(false);
    await expect(redis.call('PING')).rejects.toThrow(/closed|ECONNREFUSED/);
    await redis.restart();
    expect(redis.port).toBe(port);
    expect(redis.pid).not.toBe(pid);
    expect(await redis.call('GET', 'a')).toBeNull();
    await redis.stop();
  });

  it('answers nothing while frozen, and everything once thawed', async () => {
    const redis = await startRedis();
    await redis.call('PING');
    redis.freeze();
    let answered = false;
    const late = redis.call('INCR', 'a').then(reply => {
      answered = true;
      return reply;
    });
    await new Promise(resolve => setTimeout(resolve, 150));
    expect(answered).toBe(false);
    redis.thaw();
    expect(await late).toBe(1);
    redis.freeze();
    await redis.stop();
    expect(redis.running).toBe(false);
  });

  it('asks for its password', async () => {
    const redis = await startRedis({ password: 'secret' });
    expect(await redis.call('PING')).toBe('PONG');
    const stranger = new Redis({ port: redis.port, lazyConnect: true, retryStrategy: null });
    stranger.on('error', () => {});
    await expect(stranger.get('a')).rejects.toThrow('NOAUTH');
    stranger.disconnect();
    await redis.stop();
  });

  it('hears of a command at once through a slow proxy, and is heard late', async () => {
    const redis = await startRedis();
    const proxy = await startProxy(redis.port);
    const client = new Redis({ port: proxy.port });
    await client.ping();
    proxy.replyDelayMs = 200;
    const started = performance.now();
    const slow = client.incr('a');
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(await redis.call('GET', 'a')).toBe('1');
    expect(await slow).toBe(1);
    expect(performance.now() - started).toBeGreaterThanOrEqual(195);
    client.disconnect();
    await proxy.close();
    await redis.stop();
  });
});

describe('a cluster of three masters and three replicas', () => {
  it('serves a client while a slot moves, and promotes a replica', async () => {
    const cluster = await startCluster();
    const client = new Cluster([...cluster.addresses]);
    onEnd(async () => {
      client.disconnect();
      await cluster.stop();
    });
    const key = 'some key';
    const slot = await cluster.slotOf(key);
    const owner = await cluster.slotOwner(slot);
    const other = cluster.nodes.slice(0, 3).find(node => node.id !== owner.id)!;
    await client.incr(key);
    const moving = cluster.moveSlot(slot, other, { pauseMs: 100 });
    for (let i = 0; i < 20; i++) await client.incr(key);
    await moving;
    expect((await cluster.slotOwner(slot)).id).toBe(other.id);
    expect(await other.call('GET', key)).toBe('21');
    expect(await cluster.keys()).toEqual([key]);

    const promoted = await cluster.failover(slot);
    expect(promoted.id).not.toBe(other.id);
    expect((await cluster.slotOwner(slot)).id).toBe(promoted.id);
  });
});

describe('a sentinel with a master and a replica', () => {
  it('names the new master after an ordered failover and after a crash', async () => {
    const sentinel = await startSentinel();
    const before = await sentinel.master();
    await before.call('SET', 'a', 1);
    await before.call('WAIT', 1, 1_000);
    const after = await sentinel.failover();
    expect(after.port).not.toBe(before.port);
    expect(await after.call('GET', 'a')).toBe('1');
    await sentinel.stop();

    const second = await startSentinel();
    const killed = await second.master();
    expect((await second.crash()).port).not.toBe(killed.port);
    await second.stop();
  });
});

describe('the endpoint that speaks the REST protocol of Upstash', () => {
  it.each(['base64', false] as const)('serves the SDK with responseEncoding %s', async responseEncoding => {
    const redis = await startRedis();
    const endpoint = await upstashEndpoint(redis.port);
    const client = new UpstashRedis({
      url: endpoint.url,
      token: endpoint.token,
      responseEncoding,
      retry: false,
    });
    expect(await client.set('a', 'grüße')).toBe('OK');
    expect(await client.get('a')).toBe('grüße');
    expect(await client.get('none')).toBeNull();
    const reply = await client.eval('return {1, "two", {3, "four"}, false, {}}', [], []);
    expect(reply).toEqual([1, 'two', [3, 'four'], null, []]);
    await expect(client.evalsha('0'.repeat(40), [], [])).rejects.toThrow('NOSCRIPT');

    const before = endpoint.requests;
    expect(await client.pipeline().incr('n').incr('n').exec()).toEqual([1, 2]);
    expect(await client.multi().incr('n').get('a').exec()).toEqual([3, 'grüße']);
    expect(endpoint.requests - before).toBe(2);

    const stranger = new UpstashRedis({ url: endpoint.url, token: 'wrong', retry: false });
    await expect(stranger.get('a')).rejects.toThrow('Unauthorized');

    await endpoint.refuse();
    await expect(client.get('a')).rejects.toThrow('fetch failed');
    await endpoint.accept();
    endpoint.delayMs = 100;
    const started = performance.now();
    expect(await client.get('a')).toBe('grüße');
    expect(performance.now() - started).toBeGreaterThanOrEqual(95);
    await endpoint.close();
    await redis.stop();
  });
});
