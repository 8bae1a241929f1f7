import type { Application } from 'express';
import supertest from 'supertest';
import { rateRouter } from '../../src/service/index.js';
import type { RateRouter, RateServiceOptions } from '../../src/service/index.js';
import { hashSubject } from '../../src/core/subject.js';
import { MemoryStore } from '../../src/index.js';
import { ruleOf } from '../../src/service/endpoint.js';
import { FakeClock } from '../../src/testing/fake-clock.js';
import { NOON } from './decisions.js';
import { EXPRESSES } from './http.js';
import type { Express } from './http.js';
import { applyBatch } from '../../src/testing/batch.js';

export const ADMIN_KEY = 'the admin of the rates';
export const asAdmin = { 'X-Admin-Key': ADMIN_KEY };

type Headers = Record<string, string>;

export interface RateApp {
  readonly app: Application;
  readonly router: RateRouter;
  readonly clock: FakeClock;
  readonly store: MemoryStore;
  /** `POST /rate/check` for a user; a text goes as it is. */
  check(user: string, body: unknown, headers?: Headers): supertest.Test;
  status(user: string, endpoint: string): supertest.Test;
  reset(path: string, headers?: Headers): supertest.Test;
}

/** The service at the root of an application, in a memory store whose clock stands still. */
export function rateApp(options: RateServiceOptions = {}, express: Express = EXPRESSES[0]![1]): RateApp {
  const clock = new FakeClock(NOON);
  const store = new MemoryStore({ clock });
  const router = rateRouter({ store, adminKey: ADMIN_KEY, ...options });
  const app = express();
  app.use(router);
  return {
    app,
    router,
    clock,
    store,
    check: (user, body, headers = {}) =>
      supertest(app)
        .post('/rate/check')
        .set({ 'X-User-Id': user, 'Content-Type': 'application/json', ...headers })
        .send(typeof body === 'string' ? body : JSON.stringify(body)),
    status: (user, endpoint) => supertest(app).get('/rate/status').query({ endpoint }).set('X-User-Id', user),
    reset: (path, headers = asAdmin) => supertest(app).delete(`/rate/reset/${path}`).set(headers),
  };
}

export const expectProblem = (reply: supertest.Response, status: number): void => {
  expect({ status: reply.status, type: reply.headers['content-type'] }).toEqual({
    status,
    type: 'application/problem+json',
  });
  expect(JSON.parse(reply.text)).toMatchObject({ status, detail: expect.any(String) });
};

/** What `POST /rate/check` does, without HTTP: for tests with ten thousand users. */
export function consumeAs(store: MemoryStore, user: string, endpoint = '/a'): void {
  applyBatch(store, [
    {
      rule: ruleOf(endpoint, 10, 60),
      subject: hashSubject(user, {}),
      operation: { type: 'consume', cost: 1 },
    },
  ]);
}
