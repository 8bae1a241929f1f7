import type { Application } from 'express';
import supertest from 'supertest';
import { createLimiter, MemoryStore } from '../../src/index.js';
import type { Limiter } from '../../src/index.js';
import { adminRouter } from '../../src/admin/index.js';
import type { AdminOptions, AdminRouter } from '../../src/admin/index.js';
import { EXPRESSES } from './http.js';
import type { Express } from './http.js';

export const ADMIN_KEY = 'correct horse battery staple';
export const READ_KEY = 'look-but-do-not-touch';
export const WRONG_KEY = 'open sesame, will you';

export const asAdmin = { 'X-Admin-Key': ADMIN_KEY };
export const asReader = { 'X-Admin-Key': READ_KEY };

/** Every route that wants a key, with an input that it takes. */
export const ROUTES: readonly {
  readonly method: 'get' | 'post';
  readonly path: string;
  readonly body?: object;
}[] = [
  { method: 'get', path: '/scopes' },
  { method: 'get', path: `/status?hash=${'a'.repeat(64)}` },
  { method: 'post', path: '/status', body: { subject: { parts: ['alice'] } } },
  { method: 'post', path: '/reset', body: { subject: { parts: ['alice'] } } },
  { method: 'post', path: '/block', body: { subject: { parts: ['alice'] }, scope: 'api', blockSec: 1 } },
  { method: 'post', path: '/unblock', body: { subject: { parts: ['alice'] } } },
  { method: 'get', path: '/blocks' },
];

export interface AdminApp {
  readonly app: Application;
  readonly router: AdminRouter;
  readonly limiters: readonly Limiter[];
  get(path: string, headers?: Record<string, string>): supertest.Test;
  post(path: string, body: string | object, headers?: Record<string, string>): supertest.Test;
}

/** The two rules that the tests handle, in a store of their own. */
export function twoLimiters(): Limiter[] {
  const store = new MemoryStore();
  return [
    createLimiter({ scope: 'api', limit: 5, windowSec: 60, blockSec: 120, store }),
    createLimiter({ scope: 'login.pair', limit: 2, windowSec: 900, blockSec: 900, store }),
  ];
}

/** An application with the router at /admin. */
export function adminApp(
  options: Partial<AdminOptions> = {},
  express: Express = EXPRESSES[0]![1],
  make: (options: AdminOptions) => AdminRouter = adminRouter,
): AdminApp {
  const limiters = options.limiters ?? twoLimiters();
  const router = make({ limiters, adminKey: ADMIN_KEY, readKey: READ_KEY, ...options });
  const app = express();
  app.use('/admin', router);
  return {
    app,
    router,
    limiters: limiters as Limiter[],
    get: (path, headers = asAdmin) => supertest(app).get(`/admin${path}`).set(headers),
    post: (path, body, headers = asAdmin) =>
      supertest(app).post(`/admin${path}`).set('Content-Type', 'application/json').set(headers).send(body),
  };
}

/** The same with the Express that the router itself is made of, as in an application that has only that one. */
export function adminAppOf(major: '4' | '5'): (options?: Partial<AdminOptions>) => AdminApp {
  const name = major === '4' ? 'express4' : 'express';
  let loaded: { adminRouter: typeof adminRouter } | undefined;
  jest.isolateModules(() => {
    jest.doMock('express', () => jest.requireActual<object>(name));
    loaded = jest.requireActual('../../src/admin/index.js');
    jest.dontMock('express');
  });
  const express = jest.requireActual<Express>(name);
  return options => adminApp(options, express, loaded!.adminRouter);
}
