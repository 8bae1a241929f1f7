// What a decision costs over Redis: CPU of this process and of the server, beside the cheapest things one could do instead.
//
//   npm run build && node bench/redis.mjs [rounds] [decisions per burst]
//
// Paired bursts: in each round every contender runs one burst, in an order that changes, and its CPU is divided by that of the
// yardstick in the same round. Told is the median of the rounds, so that a busy machine disturbs all alike. Every contender is
// checked to have counted right, before and after.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { rateLimit as expressRateLimit } from 'express-rate-limit';
import { Redis } from 'ioredis';
import { RedisStore as RateLimitRedis } from 'rate-limit-redis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { createLimiter } from '../dist/index.js';
import { RedisStore } from '../dist/stores/redis/index.js';

const ROUNDS = Number(process.argv[2] ?? 11);
const BURST = Number(process.argv[3] ?? 30_000);
const SUBJECTS = 1000;
const HOUR = 3600;

// Garbage is collected before each burst: what one contender leaves behind must not be billed to the next.
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const redis = await startRedis();
const clients = [];
try {
  const wide = await setUp('wide');
  const narrow = await setUp('narrow');
  for (const contender of [...wide, ...narrow]) await contender.check?.();
  const at64 = await compare(wide, 64, BURST);
  const at1 = await compare(narrow, 1, Math.ceil(BURST / 5));
  for (const contender of [...wide, ...narrow]) await contender.check?.();
  await report(at64, at1);
} finally {
  for (const client of clients) client.disconnect();
  await redis.stop();
}

/** Contenders: `decide(i)` is one decision, `i` counts up, and what it resolves with must be `isRight`. */
async function setUp(name) {
  const open = async (options = {}) => {
    const client = new Redis({ port: redis.port, ...options });
    clients.push(client);
    await once(client, 'ready');
    return client;
  };
  const subject = i => `${name}.${i % SUBJECTS}`;
  const incr = async client => {
    let calls = 0;
    const key = i => `incr:${name}:${subject(i)}`;
    return {
      decide: i => {
        calls++;
        return client.incr(key(i));
      },
      isRight: count => count > 0,
      check: async () => {
        const counts = await client.mget(Array.from({ length: SUBJECTS }, (_, i) => key(i)));
        assert.equal(
          counts.reduce((sum, count) => sum + Number(count), 0),
          calls,
        );
      },
    };
  };
  const plain = { name: 'INCR, ioredis', ...(await incr(await open())) };
  const ours = await limitkeeper('limitkeeper, one rule', `${name}.one`, 1, await open(), subject);
  if (name === 'narrow') {
    return [plain, ours, await flexible('rate-limiter-flexible, one at a time', await open(), subject)];
  }

  const auto = {
    name: 'INCR, ioredis auto-pipelined',
    ...(await incr(await open({ enableAutoPipelining: true }))),
  };
  const three = await limitkeeper('limitkeeper, three rules', `${name}.three`, 3, await open(), subject);
  return [
    auto,
    ours,
    three,
    await blocked(await open(), subject),
    await flexible(
      'rate-limiter-flexible, auto-pipelined',
      await open({ enableAutoPipelining: true }),
      subject,
    ),
    await flexible('rate-limiter-flexible', await open(), subject),
    await express(await open(), subject),
  ];
}

async function limitkeeper(name, prefix, rules, client, subject) {
  const store = new RedisStore({ client, prefix });
  const rule = i => ({ scope: `bench.${i}`, limit: 1_000_000, windowSec: HOUR });
  const limiter = createLimiter({
    rules: Array.from({ length: rules }, (_, i) => rule(i)),
    store,
    storeTimeoutMs: 1000,
  });
  const small = createLimiter({ scope: 'small', limit: 10, windowSec: HOUR, store, storeTimeoutMs: 1000 });
  let calls = 0;
  let rounds = 0;
  return {
    name,
    decide: i => {
      calls++;
      return limiter.consume(subject(i));
    },
    isRight: decision => decision.allowed && decision.degraded === undefined,
    check: async () => {
      const looks = await Promise.all(Array.from({ length: SUBJECTS }, (_, i) => limiter.peek(subject(i))));
      for (let rule = 0; rule < rules; rule++) {
        assert.equal(
          looks.reduce((sum, { readings }) => sum + 1_000_000 - readings[rule].remaining, 0),
          calls,
        );
      }
      const tries = await Promise.all(Array.from({ length: 64 }, () => small.consume(`check ${rounds}`)));
      assert.equal(tries.filter(({ allowed }) => allowed).length, 10);
      rounds++;
    },
  };
}

async function blocked(client, subject) {
  const store = new RedisStore({ client, prefix: 'denied' });
  const limiter = createLimiter({ scope: 'bench', limit: 5, windowSec: HOUR, store, storeTimeoutMs: 1000 });
  // One attacker in each burst, not a thousand: the cache holds for a second.
  const attacker = i => subject(i % 20);
  for (let i = 0; i < 20; i++) await limiter.block(attacker(i), 'forever');
  return {
    name: 'limitkeeper, blocked (deny cache)',
    decide: i => limiter.consume(attacker(i)),
    isRight: decision => decision.reason === 'blocked' && decision.degraded === undefined,
  };
}

async function flexible(name, client, subject) {
  const limiter = new RateLimiterRedis({
    storeClient: client,
    keyPrefix: name,
    points: 1_000_000,
    duration: HOUR,
  });
  const small = new RateLimiterRedis({
    storeClient: client,
    keyPrefix: `${name}:small`,
    points: 10,
    duration: HOUR,
  });
  let rounds = 0;
  return {
    name,
    decide: i => limiter.consume(subject(i)),
    isRight: result => result.consumedPoints > 0,
    check: async () => {
      const tries = await Promise.allSettled(
        Array.from({ length: 64 }, () => small.consume(`check ${rounds}`)),
      );
      assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 10);
      rounds++;
    },
  };
}

async function express(client, subject) {
  const store = prefix => new RateLimitRedis({ sendCommand: (...args) => client.call(...args), prefix });
  const options = { windowMs: HOUR * 1000, keyGenerator: request => request.key, validate: false };
  const middleware = expressRateLimit({ ...options, limit: 1_000_000, store: store('express:') });
  const small = expressRateLimit({ ...options, limit: 10, store: store('express:small:') });
  // The middleware needs no more than this of a request and a response.
  const run = (limiter, key) =>
    new Promise((resolve, reject) => {
      const response = {
        headersSent: false,
        setHeader: () => response,
        append: () => response,
        status: () => response,
        send: () => resolve(false),
      };
      limiter({ key, ip: '203.0.113.7', headers: {}, app: { get: () => false } }, response, error =>
        error === undefined ? resolve(true) : reject(error),
      );
    });
  let rounds = 0;
  return {
    name: 'express-rate-limit with rate-limit-redis',
    decide: i => run(middleware, subject(i)),
    isRight: passed => passed,
    check: async () => {
      const tries = await Promise.all(Array.from({ length: 64 }, () => run(small, `check ${rounds}`)));
      assert.equal(tries.filter(Boolean).length, 10);
      rounds++;
    },
  };
}

/** Medians by contender: microseconds of CPU here and in the server, and the ratio to the first contender. */
async function compare(contenders, concurrency, decisions) {
  const runs = contenders.map(() => ({ own: [], server: [], ratio: [] }));
  let next = 0;
  for (const contender of contenders) await burst(contender, concurrency, decisions, () => next++);
  for (let round = 0; round < ROUNDS; round++) {
    const costs = [];
    for (let turn = 0; turn < contenders.length; turn++) {
      const which = (turn + round) % contenders.length;
      costs[which] = await measured(() => burst(contenders[which], concurrency, decisions, () => next++));
    }
    costs.forEach(({ own, server }, which) => {
      runs[which].own.push(own / decisions);
      runs[which].server.push(server / decisions);
      runs[which].ratio.push(own / costs[0].own);
    });
  }
  return contenders.map(({ name }, i) => ({
    name,
    own: median(runs[i].own),
    server: median(runs[i].server),
    ratio: median(runs[i].ratio),
  }));
}

async function burst({ name, decide, isRight }, concurrency, decisions, next) {
  let started = 0;
  const lane = async () => {
    while (started++ < decisions) {
      const result = await decide(next());
      if (!isRight(result)) throw new Error(`${name}: ${JSON.stringify(result)}`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
}

async function measured(run) {
  const server = await redis.cpuUs();
  collectGarbage();
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return { own: user + system, server: (await redis.cpuUs()) - server };
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

async function report(at64, at1) {
  const version = await redis.version();
  console.log(
    `${cpus()[0].model.trim()} × ${cpus().length}, Node ${process.version}, Redis ${version}, ioredis`,
  );
  console.log(`medians of ${ROUNDS} rounds of ${BURST} decisions; CPU in µs per decision\n`);
  const print = (title, rows, targets) => {
    console.log(
      `| ${title} | CPU | ratio | target | CPU of the server |\n| --- | ---: | ---: | ---: | ---: |`,
    );
    for (const { name, own, server, ratio } of rows) {
      const target = targets[name] ?? '';
      console.log(`| ${name} | ${own.toFixed(1)} | ${ratio.toFixed(2)} | ${target} | ${server.toFixed(1)} |`);
    }
    console.log('');
  };
  print('64 at once', at64, {
    'limitkeeper, one rule': '≤ 1.0',
    'limitkeeper, blocked (deny cache)': '≤ 0.25',
  });
  const [one, three] = ['one rule', 'three rules'].map(name =>
    at64.find(row => row.name === `limitkeeper, ${name}`),
  );
  console.log(`three rules to one: ${(three.own / one.own).toFixed(2)} (target ≤ 1.6)\n`);
  print('one at a time', at1, { 'limitkeeper, one rule': '≤ 1.3' });
}

async function startRedis() {
  const folder = await mkdtemp(join(tmpdir(), 'limitkeeper-bench-'));
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  await new Promise(resolve => probe.close(resolve));
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    folder,
  ];
  const server = spawn('redis-server', args, { stdio: 'ignore' });
  const control = new Redis({ port });
  // It tries until the server listens.
  control.on('error', () => {});
  const ended = once(server, 'exit').then(() => {
    throw new Error('redis-server ended before it could be used');
  });
  await Promise.race([new Promise(resolve => control.once('ready', resolve)), ended]);
  // It may end now.
  ended.catch(() => {});
  const field = async (section, name) =>
    new RegExp(`^${name}:(.+)$`, 'm').exec(await control.info(section))[1].trim();
  return {
    port,
    version: () => field('server', 'redis_version'),
    cpuUs: async () =>
      1e6 * (Number(await field('cpu', 'used_cpu_user')) + Number(await field('cpu', 'used_cpu_sys'))),
    stop: async () => {
      control.disconnect();
      const gone = once(server, 'exit');
      server.kill();
      await gone;
      await rm(folder, { recursive: true });
    },
  };
}
