import supertest from 'supertest';
import { ADMIN_KEY, asAdmin, expectProblem, rateApp } from '../support/service.js';
import type { RateApp } from '../support/service.js';
import { EXPRESSES } from '../support/http.js';

/** Every attack of the seed, and beside it the honest twin that looks almost the same. */
describe.each(EXPRESSES)('with %s', (_, express) => {
  const used = async ({ status }: RateApp, user: string, endpoint: string): Promise<number> =>
    (await status(user, endpoint)).body.used as number;

  it('ATK-01 a check without X-User-Id is answered 400, one with it is counted', async () => {
    const rates = rateApp({}, express);
    const post = () => supertest(rates.app).post('/rate/check');
    const reply = await post().send({ endpoint: '/search' });
    expectProblem(reply, 400);
    expect(reply.body.detail).toMatch(/X-User-Id/);
    expectProblem(await post().set('X-User-Id', '').send({ endpoint: '/search' }), 400);
    expect(rates.store.size).toBe(0);
    expect((await post().set('X-User-Id', '42').send({ endpoint: '/search' })).status).toBe(200);
    expect(await used(rates, '42', '/search')).toBe(1);
  });

  it('ATK-02 an empty endpoint is answered 422, one of a single letter is counted', async () => {
    const rates = rateApp({}, express);
    expectProblem(await rates.check('42', { endpoint: '' }), 422);
    expect(rates.store.size).toBe(0);
    expect((await rates.check('42', { endpoint: ' ' })).status).toBe(200);
    expect(await used(rates, '42', ' ')).toBe(1);
  });

  it('ATK-03 an endpoint of 129 characters is answered 422, one of 128 is counted', async () => {
    const rates = rateApp({}, express);
    for (const letter of ['x', 'é', '😀']) {
      expectProblem(await rates.check('42', { endpoint: letter.repeat(129) }), 422);
      expect((await rates.check('42', { endpoint: letter.repeat(128) })).status).toBe(200);
      expect(await used(rates, '42', letter.repeat(128))).toBe(1);
      expectProblem(await rates.status('42', letter.repeat(129)), 422);
      expectProblem(await rates.reset(`42?endpoint=${encodeURIComponent(letter.repeat(129))}`), 422);
    }
    expectProblem(await rates.check('42', { endpoint: 'x'.repeat(1_000_000) }), 413);
    expect(rates.store.size).toBe(3);
  });

  it('ATK-04 SQL in an endpoint is a name like any other', async () => {
    const rates = rateApp({ limit: 2 }, express);
    const attack = "'; DROP TABLE rate_events; --";
    await rates.check('42', { endpoint: '/search' });
    for (const endpoint of [attack, "' OR '1'='1", '%', '_', '*', '\\']) {
      expect((await rates.check('42', { endpoint })).body).toMatchObject({ allowed: true, used: 1 });
    }
    expect((await rates.check('42', { endpoint: attack })).status).toBe(200);
    expectProblem(await rates.check('42', { endpoint: attack }), 429);
    expect((await rates.reset(`42?endpoint=${encodeURIComponent(attack)}`)).body).toEqual({
      userId: '42',
      reset: 1,
    });
    expect([await used(rates, '42', attack), await used(rates, '42', '/search')]).toEqual([0, 1]);
  });

  it('ATK-05 a reset without a key is answered 403, with it the user starts afresh', async () => {
    const rates = rateApp({}, express);
    await rates.check('42', { endpoint: '/search' });
    expectProblem(await rates.reset('42', {}), 403);
    expectProblem(await rates.reset('42', { 'X-Admin-Key': '' }), 403);
    expectProblem(await rates.reset('42', { 'X-User-Id': '42' }), 403);
    expect(await used(rates, '42', '/search')).toBe(1);
    expect((await rates.reset('42')).status).toBe(200);
    expect(await used(rates, '42', '/search')).toBe(0);
  });

  it('ATK-06 a reset with a wrong key is answered 403, with the right one it is done', async () => {
    const rates = rateApp({}, express);
    await rates.check('42', { endpoint: '/search' });
    for (const key of [
      'wrong-wrong-wrong-wrong',
      ADMIN_KEY.slice(1),
      `${ADMIN_KEY}x`,
      ADMIN_KEY.toUpperCase(),
      'true',
    ]) {
      expectProblem(await rates.reset('42', { 'X-Admin-Key': key }), 403);
      expectProblem(await rates.reset('42', { Authorization: `Bearer ${key}` }), 403);
    }
    expect(await used(rates, '42', '/search')).toBe(1);
    expect((await rates.reset('42', { Authorization: `Bearer ${ADMIN_KEY}` })).body).toEqual({
      userId: '42',
      reset: 1,
    });
    for (const adminKey of [undefined, '', [], ['']]) {
      expectProblem(await rateApp({ adminKey }, express).reset('42', asAdmin), 403);
      expectProblem(await rateApp({ adminKey }, express).reset('42', { 'X-Admin-Key': '' }), 403);
    }
  });

  it('ATK-07 a negative user in the path is answered 404, his positive twin 200', async () => {
    const rates = rateApp({}, express);
    for (const id of ['-1', '+1', '%2D1', '−1']) expectProblem(await rates.reset(encodeURI(id)), 404);
    expect((await rates.reset('1')).body).toEqual({ userId: '1', reset: 0 });
  });

  it('ATK-08 user zero is answered 404, user ten 200', async () => {
    const rates = rateApp({}, express);
    for (const id of ['0', '00', '007', '010']) expectProblem(await rates.reset(id), 404);
    expect((await rates.reset('10')).status).toBe(200);
  });

  it('ATK-09 a user that is no number is answered 404, digits however many 200', async () => {
    const rates = rateApp({}, express);
    const bad = [
      'abc',
      '1e3',
      '1.0',
      '0x1',
      '%D9%A3',
      '1%00',
      '1%0A',
      '1%202',
      '%',
      '%E0%A4%A',
      '1/2',
      '',
      '1;',
      '%2F1',
    ];
    for (const id of bad) expectProblem(await rates.reset(id), 404);
    // Two numbers that a double cannot tell apart are two users.
    await rates.check('9007199254740992', { endpoint: '/a' });
    await rates.check('9007199254740993', { endpoint: '/a' });
    expect((await rates.reset('9007199254740993')).body).toEqual({ userId: '9007199254740993', reset: 1 });
    expect(await used(rates, '9007199254740992', '/a')).toBe(1);
    expect((await rates.reset('%34%32')).body).toEqual({ userId: '42', reset: 0 });
  });

  it('ATK-10 a status without an endpoint is answered 422, with one 200', async () => {
    const rates = rateApp({}, express);
    const status = (query: string) => supertest(rates.app).get(`/rate/status${query}`).set('X-User-Id', '42');
    for (const query of ['', '?endpoint=', '?endpoint=a&endpoint=b', '?endpoint[]=a', '?Endpoint=a']) {
      expectProblem(await status(query), 422);
    }
    expect((await status('?endpoint=%2Fsearch')).body).toMatchObject({ limit: 10, used: 0, remaining: 10 });
  });

  it('ATK-11 a check without a body is answered 400, with one 200', async () => {
    const rates = rateApp({}, express);
    const post = () => supertest(rates.app).post('/rate/check').set('X-User-Id', '42');
    expectProblem(await post(), 400);
    expectProblem(await post().set('Content-Type', 'application/json'), 400);
    for (const body of ['{', 'endpoint=/search', '{"endpoint": /search}', '\0']) {
      expectProblem(await rates.check('42', body), 400);
    }
    expectProblem(await rates.check('42', '{"endpoint":"/search"}', { 'Content-Type': 'text/plain' }), 400);
    expect(rates.store.size).toBe(0);
    expect((await rates.check('42', { endpoint: '/search' })).status).toBe(200);
  });

  it('ATK-12 a body without an endpoint is answered 422, with one 200', async () => {
    const rates = rateApp({}, express);
    const bodies = [
      '{}',
      'null',
      '[]',
      '5',
      '"x"',
      '{"Endpoint":"a"}',
      '{"endpoint":null}',
      '{"endpoint":5}',
    ];
    bodies.push('{"endpoint":["a"]}', '{"endpoint":{}}', '{"__proto__":{"endpoint":"a"}}');
    for (const body of bodies) expectProblem(await rates.check('42', body), 422);
    expect(rates.store.size).toBe(0);
    expect((await rates.check('42', { endpoint: 'a', client: 'shop' })).status).toBe(200);
  });
});
