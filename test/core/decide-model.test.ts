import fc from 'fast-check';
import { Decider } from '../support/decider.js';
import { Model } from '../support/model.js';
import { ALL_OPERATIONS, extremeRule, play, ruleFrom, runs, smallRule, steps } from '../support/sequences.js';
import type { RuleParts, Step } from '../support/sequences.js';

function expectLikeModel(parts: RuleParts, sequence: readonly Step[]): void {
  const rule = ruleFrom(parts);
  const model = new Model(rule);
  for (const { now, operation, reading } of play(rule, sequence, new Decider(rule).ask)) {
    expect({ now, operation, reading }).toEqual({ now, operation, reading: model.apply(operation, now) });
  }
}

describe('every value of every reading is that of a model in fractions of big integers', () => {
  test('small rules, every operation', () => {
    fc.assert(fc.property(smallRule(), steps(ALL_OPERATIONS), expectLikeModel), runs(300));
  });

  test('a million units a second, windows of years, numbers near 2^52', () => {
    fc.assert(fc.property(extremeRule, steps(ALL_OPERATIONS, 25), expectLikeModel), runs(200));
  });
});
