import {
  isLimitkeeperError,
  rangeError,
  received,
  receivedSecret,
  storeError,
  typeError,
} from '../../src/core/errors.js';

describe('errors carry a code, and what they are about', () => {
  test.each([
    [typeError, TypeError],
    [rangeError, RangeError],
    [storeError, Error],
  ])('%p', (make, kind) => {
    const cause = new Error('below');
    const error = make('ERR_LIMITKEEPER_COST', 'cost must be whole.', { option: 'cost', cause });
    expect(error).toBeInstanceOf(kind);
    expect(error.name).toBe(kind.name);
    expect(error).toMatchObject({
      message: 'limitkeeper: cost must be whole.',
      code: 'ERR_LIMITKEEPER_COST',
      option: 'cost',
      cause,
    });
    expect(isLimitkeeperError(error)).toBe(true);
  });

  test('without an option or a cause they have no such property', () => {
    const error = typeError('ERR_LIMITKEEPER_COST', 'x');
    expect('option' in error).toBe(false);
    expect('cause' in error).toBe(false);
  });
});

test('an error of another copy of the library is known by its code', () => {
  class LimitkeeperError extends Error {
    code = 'ERR_LIMITKEEPER_STORE';
  }
  expect(isLimitkeeperError(new LimitkeeperError('from the other copy'))).toBe(true);
});

test.each([
  undefined,
  null,
  'ERR_LIMITKEEPER_STORE',
  new Error('ERR_LIMITKEEPER_STORE'),
  Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
  Object.assign(new Error('x'), { code: 5 }),
  { code: 'ERR_LIMITKEEPER_STORE' },
])('%p is none of ours', value => {
  expect(isLimitkeeperError(value)).toBe(false);
});

describe('what came, in words', () => {
  test.each<[unknown, string, string]>([
    ['5', 'the string "5"', 'a string'],
    ['', 'the string ""', 'an empty string'],
    ['a\n"b"', 'the string "a\\n\\"b\\""', 'a string'],
    ['x'.repeat(61), `the string "${'x'.repeat(60)}…"`, 'a string'],
    [5, '5', 'a number'],
    [-0, '-0', 'a number'],
    [NaN, 'NaN', 'a number'],
    [5n, '5n', 'a bigint'],
    [undefined, 'undefined', 'undefined'],
    [null, 'null', 'null'],
    [true, 'true', 'true'],
    [[1, 2], 'an array of 2', 'an array of 2'],
    [{ password: 'x' }, 'an object', 'an object'],
    [Object.create(null), 'an object', 'an object'],
    [() => 5, 'a function', 'a function'],
    [Symbol('x'), 'a symbol', 'a symbol'],
  ])('%p', (value, text, secret) => {
    expect(received(value)).toBe(text);
    expect(receivedSecret(value)).toBe(secret);
  });
});
