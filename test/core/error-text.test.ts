import { errorText } from '../../src/core/error-text.js';

const withCause = (message: string, more: object): Error => Object.assign(new Error(message), more);

describe('L1 what is said of an error of a store', () => {
  test.each<[string, unknown, string]>([
    [
      'its message',
      new Error('WRONGPASS invalid username-password pair'),
      'WRONGPASS invalid username-password pair',
    ],
    [
      'what caused it',
      withCause('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:1') }),
      'fetch failed: connect ECONNREFUSED 127.0.0.1:1',
    ],
    [
      'what caused it, once',
      withCause('limitkeeper: the store failed: away', { cause: new Error('away') }),
      'the store failed: away',
    ],
    [
      'the addresses that were tried, of an error without a message',
      Object.assign(new Error(''), {
        code: 'ECONNREFUSED',
        errors: [new Error('refused ::1'), new Error('refused 127.0.0.1')],
      }),
      'ECONNREFUSED: refused ::1: refused 127.0.0.1',
    ],
    [
      'the node that failed last',
      withCause('Failed to refresh slots cache.', {
        lastNodeError: new Error('NOAUTH Authentication required.'),
      }),
      'Failed to refresh slots cache: NOAUTH Authentication required.',
    ],
    ['one line', new Error('a\n  b\r\n\tc'), 'a b c'],
    ['what has no message', { code: 'ETIMEDOUT' }, 'ETIMEDOUT'],
    ['a text', 'away', 'it threw something that is no Error'],
    ['nothing', undefined, 'it threw something that is no Error'],
    [
      'a cycle',
      (() => {
        const a = new Error('a');
        return Object.assign(a, { cause: a });
      })(),
      'a',
    ],
    [
      'what cannot be read',
      Object.defineProperty({}, 'message', {
        get: () => {
          throw new Error('no');
        },
      }),
      'an error that cannot be read',
    ],
  ])('%s', (_what, error, text) => {
    expect(errorText(error)).toBe(text);
  });

  const HASH = 'b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184';
  test.each([
    [
      'a password in an address',
      'no route to redis://bob:hunter2@db.internal:6379/0',
      'no route to redis://***@db.internal:6379/0',
    ],
    ['one with an @', 'no route to rediss://:hun@ter2@db', 'no route to rediss://***@db'],
    ['a user alone', 'mysql://hunter2@db/x', 'mysql://***@db/x'],
    ['a setting', 'cannot use password=hunter2 host=db', 'cannot use password=*** host=db'],
    [
      'the arguments of a command',
      "ERR unknown command 'auth', with args beginning with: 'hunter2' ",
      "ERR unknown command 'auth', with args beginning with: ***",
    ],
    ['a key', `no permission for limits:{${HASH}}`, 'no permission for limits:{***}'],
    ['a token', 'bad AXlkASQgOTBkNWI3ZGQtYzYxMy00ZGNiLWI1NmMtYzE4ZGYw== here', 'bad *** here'],
  ])('never %s', (_what, message, text) => {
    expect(errorText(new Error(message))).toBe(text);
    expect(errorText(withCause('away', { cause: new Error(message) }))).toBe(`away: ${text}`);
  });

  test('never half of what is too long to be read whole', () => {
    const text = errorText(new Error(`${'x y '.repeat(995)}redis://:${'hunter2'.repeat(10)}@db`));
    expect(text).not.toContain('hunter2');
    expect(errorText(new Error('hunter2'.repeat(1000)))).toBe('');
  });

  test('at most a line of 300 characters, and quickly of the worst text', () => {
    expect(errorText(new Error('a '.repeat(1000)))).toHaveLength(301);
    for (const text of [
      'a://'.repeat(16_000),
      'a'.repeat(64_000),
      'password '.repeat(7000),
      ' '.repeat(64_000),
      'with args beginning with:'.repeat(2600),
    ]) {
      const error = new Error(text);
      // The best of a few: others use this machine, too.
      const times = Array.from({ length: 5 }, () => {
        const begin = performance.now();
        errorText(error);
        return performance.now() - begin;
      });
      expect(Math.min(...times)).toBeLessThan(5);
    }
  });
});
