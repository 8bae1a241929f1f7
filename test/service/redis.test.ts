import { Redis } from 'ioredis';
import supertest from 'supertest';
import express from 'express';
import { rateRouter } from '../../src/service/index.js';
import { ruleOf } from '../../src/service/endpoint.js';
import { hashSubject } from '../../src/core/subject.js';
import { RedisStore } from '../../src/stores/redis/index.js';
import { ADMIN_KEY, asAdmin, expectProblem } from '../support/service.js';
import { type RedisServer, startRedis } from '../support/redis/server.js';
import { applyBatch } from '../../src/testing/batch.js';

jest.setTimeout(60_000);

let redis: RedisServer;
let client: Redis;
let store: RedisStore;

beforeAll(async () => {
  redis = await startRedis();
  client = new Redis(redis.url);
  store = new RedisStore({ client });
});

afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

it('forgets all endpoints of a user and nobody else on Redis, with 10,000 others present', async () => {
  const app = express();
  app.use(rateRouter({ store, adminKey: ADMIN_KEY, storeTimeoutMs: 10_000 }));
  const check = (user: string, endpoint: string) =>
    supertest(app).post('/rate/check').set('X-User-Id', user).send({ endpoint });
  const used = async (user: string, endpoint: string) =>
    (await supertest(app).get('/rate/status').query({ endpoint }).set('X-User-Id', user)).body.used as number;

  for (const endpoint of ['/a', '/b', '/c']) expect((await check('42', endpoint)).status).toBe(200);
  const rule = ruleOf('/a', 10, 60);
  for (let start = 100_000; start < 110_000; start += 1000) {
    await Promise.all(
      Array.from({ length: 1000 }, async (_, i) =>
        applyBatch(store, [
          { rule, subject: hashSubject(String(start + i), {}), operation: { type: 'consume', cost: 1 } },
        ]),
      ),
    );
  }
  await check('4', '/a');
  expect(await redis.call('DBSIZE')).toBe(10_002);

  const reply = await supertest(app).delete('/rate/reset/42').set(asAdmin);
  expect(reply.body).toEqual({ userId: '42', reset: 3 });
  for (const endpoint of ['/a', '/b', '/c']) expect(await used('42', endpoint)).toBe(0);
  for (const user of ['4', '100000', '104242', '109999']) expect(await used(user, '/a')).toBe(1);
  expect(await redis.call('DBSIZE')).toBe(10_001);
});

it('counts exactly ten of many checks at once, and bounds endpoints like any other store', async () => {
  const app = express();
  app.use(rateRouter({ store, storeTimeoutMs: 10_000 }));
  const check = (user: string, endpoint: string) =>
    supertest(app).post('/rate/check').set('X-User-Id', user).send({ endpoint });
  const replies = await Promise.all(Array.from({ length: 40 }, () => check('7', '/a')));
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(10);
  expect(replies.filter(({ status }) => status === 429)).toHaveLength(30);

  const subject = hashSubject('8', {});
  await Promise.all(
    Array.from({ length: 1000 }, async (_, i) =>
      applyBatch(store, [
        { rule: ruleOf(String(i), 10, 60), subject, operation: { type: 'consume', cost: 1 } },
      ]),
    ),
  );
  expectProblem(await check('8', 'one more'), 422);
  expect((await check('8', '999')).body).toMatchObject({ used: 2 });
  expect(await store.inspect(subject.hash)).toHaveLength(1000);
});
