import { FakeClock } from '../../src/testing/index.js';

test('stands still until it is told otherwise', () => {
  const clock = new FakeClock(1000);
  expect([clock.now(), clock.now()]).toEqual([1000, 1000]);
  clock.advance(250);
  expect(clock.now()).toBe(1250);
  clock.advance(-1000);
  expect(clock.now()).toBe(250);
  clock.set(5);
  expect(clock.now()).toBe(5);
});

test.each([
  ['a start that is no whole number', () => new FakeClock(1.5)],
  ['a start before 1970', () => new FakeClock(-1)],
  ['a date', () => new FakeClock(new Date() as never)],
  [
    'half a millisecond',
    () => {
      new FakeClock(0).advance(0.5);
    },
  ],
  [
    'a step to before 1970',
    () => {
      new FakeClock(5).advance(-6);
    },
  ],
  [
    'no number',
    () => {
      new FakeClock(5).set(NaN);
    },
  ],
])('refuses %s', (_, make) => {
  expect(make).toThrow(expect.objectContaining({ code: 'ERR_LIMITKEEPER_OPTION_RANGE' }));
});
