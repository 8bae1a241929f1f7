import supertest from 'supertest';
import { MemoryStore } from '../../src/index.js';
import { createShop } from '../../examples/admin/app.js';
import { ADMIN_KEY, asAdmin } from '../support/admin.js';

it('the example locks somebody out and frees them by their e-mail', async () => {
  const { app, admin } = createShop({ adminKey: ADMIN_KEY, store: new MemoryStore() });
  const login = async () => (await supertest(app).post('/login?email=A@b.c')).status;
  const statuses: number[] = [];
  for (let i = 0; i < 6; i += 1) statuses.push(await login());
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  const reset = await supertest(app)
    .post('/ops/limits/reset')
    .set(asAdmin)
    .send({ subject: { part: 'a@b.c' } });
  expect(reset.body.removed).toMatchObject([{ scope: 'login.email_ip' }]);
  expect(await login()).toBe(401);
  const { text } = await supertest(app).get('/ops/limits');
  expect(text).toContain('<title>Limits</title>');
  admin.close();
});

it('the example without a key opens nothing', async () => {
  const { app } = createShop({ adminKey: undefined });
  expect((await supertest(app).get('/ops/limits')).status).toBe(403);
  expect((await supertest(app).get('/search')).status).toBe(200);
});
