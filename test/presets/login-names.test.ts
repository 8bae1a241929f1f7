import { EXPRESSES, times } from '../support/http.js';
import { loginApp } from '../support/login.js';
import type { LoginApp } from '../support/login.js';

jest.setTimeout(60_000);

let app: LoginApp;

afterEach(() => app.close());

const PATHS = ['/login', '/login/password'];

/** A database that compares names as they are, in which the attacker has an account of their own. */
const exact =
  (own: string) =>
  (name: unknown, password: unknown): boolean =>
    name === own && password === 'own';

async function guessAt(victim: string, own: string, path: string, count = 60): Promise<number> {
  for (let i = 0; i < count; i += 1) {
    await app.post(path, { email: victim, password: `guess ${String(i)}` });
    await app.post(path, { email: own, password: 'own' });
  }
  return app.checked.filter(name => name === victim).length;
}

describe.each(EXPRESSES)('S6 with %s', (_name, express) => {
  describe.each(PATHS)('at %s', path => {
    test.each(['Admin', 'ádmin', 'ａdmin', 'admin ', ' admin', 'ad\u0001min', 'admi\u0301n', 'ad\u200dmin'])(
      'a success of the account %j forgives no guess at "admin"',
      async own => {
        app = await loginApp({ resolve: { limit: 1000 } }, { express, isRight: exact(own) });
        expect(await guessAt('admin', own, path)).toBe(5);
      },
    );

    test('a success of the account itself forgives', async () => {
      app = await loginApp({ resolve: { limit: 1000 } }, { express, isRight: exact('admin') });
      const seen = [];
      for (const password of ['a', 'b', 'c', 'd', 'own', 'a', 'b', 'c', 'd', 'e', 'f'])
        seen.push((await app.post(path, { email: 'admin', password })).status);
      expect(seen).toEqual([...times(4, 401), 200, ...times(5, 401), 429]);
    });
  });
});

test.each(PATHS)('S6 at %s: 64 spellings of one name are one account', async path => {
  app = await loginApp({ resolve: { limit: 1000 }, passwordIp: { limit: 1000 } });
  for (let bits = 0; bits < 64; bits += 1) {
    const name = 'victim'.replace(/./g, (letter, i: number) =>
      (bits >> i) & 1 ? `${letter}\u0001` : letter,
    );
    await app.post(path, { email: name, password: 'wrong' });
  }
  expect(app.checked).toHaveLength(5);
});

test('S6 an application that looks accounts up in lower case says so, and its users are forgiven', async () => {
  app = await loginApp(
    { email: req => (req.body as { email: string }).email.toLowerCase() },
    { isRight: (_name, password) => password === 'own' },
  );
  const seen = [];
  for (const password of ['a', 'b', 'c', 'd', 'own', 'a', 'b', 'c', 'd', 'e', 'f'])
    seen.push((await app.post('/login', { email: 'User@Example.COM', password })).status);
  expect(seen).toEqual([...times(4, 401), 200, ...times(5, 401), 429]);
});

// Each in a place of its own, at one address: no such text may find the counter of somebody else, or a crash.
test.each<[string, unknown]>([
  ['__proto__', '__proto__'],
  ['constructor', 'constructor'],
  ['a list', ['admin']],
  ['a list of lists', [['admin']]],
  ['an object', { toString: 'admin' }],
  ['an object with a prototype', JSON.parse('{"__proto__":{"email":"admin"}}')],
  ['true', true],
  ['a huge text', 'x'.repeat(65_536)],
  ['a huge list', Array.from({ length: 5000 }, () => 'admin')],
])('S6 %s as a name: five guesses, and no more', async (_name, email) => {
  app = await loginApp();
  const seen = [];
  for (let i = 0; i < 6; i += 1) seen.push((await app.post('/login', { email, password: 'x' })).status);
  expect(seen).toEqual([...times(5, 401), 429]);
});
