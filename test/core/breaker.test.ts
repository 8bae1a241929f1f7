import { Breaker } from '../../src/core/breaker.js';
import { storeError } from '../../src/core/errors.js';

type Step = [time: number, action: 'succeeded' | 'failed' | 'allows', expected?: boolean];

const failures = (time: number, n: number): Step[] => Array.from({ length: n }, () => [time, 'failed']);

describe('a store that fails is left alone', () => {
  test.each<[string, Step[]]>([
    ['not after four failures in a row', [...failures(0, 4), [0, 'allows', true], [0, 'allows', true]]],
    ['after five, for a second', [...failures(0, 5), [0, 'allows', false], [999, 'allows', false]]],
    [
      'then one probe goes, and everything else fails fast meanwhile',
      [...failures(0, 5), [1000, 'allows', true], [1000, 'allows', false], [9000, 'allows', false]],
    ],
    [
      'a probe that succeeds ends it',
      [
        ...failures(0, 5),
        [1000, 'allows', true],
        [1100, 'succeeded'],
        [1100, 'allows', true],
        [1100, 'allows', true],
      ],
    ],
    [
      'a probe that fails starts another second',
      [
        ...failures(0, 5),
        [1000, 'allows', true],
        [1250, 'failed'],
        [2249, 'allows', false],
        [2250, 'allows', true],
        [2250, 'allows', false],
      ],
    ],
    [
      'after a good probe it takes five failures again',
      [
        ...failures(0, 5),
        [1000, 'allows', true],
        [1001, 'succeeded'],
        ...failures(1002, 4),
        [1002, 'allows', true],
        ...failures(1002, 1),
        [1002, 'allows', false],
      ],
    ],
    [
      'a success in between begins the count anew',
      [...failures(0, 4), [1, 'succeeded'], ...failures(2, 4), [2, 'allows', true]],
    ],
    [
      'calls that were under way when it opened, and fail later, do not prolong the second',
      [...failures(0, 5), ...failures(900, 20), [999, 'allows', false], [1000, 'allows', true]],
    ],
    [
      'a reply in time of a call made before shows that the store lives',
      [...failures(0, 5), [10, 'succeeded'], [10, 'allows', true]],
    ],
  ])('%s', (_promise, steps) => {
    const breaker = new Breaker();
    for (const [time, action, expected] of steps) {
      if (action === 'allows') expect([time, breaker.allows(time)]).toEqual([time, expected]);
      else if (action === 'failed') breaker.failed(time, storeError('ERR_LIMITKEEPER_STORE', 'away'));
      else breaker[action]();
    }
  });
});
