import { Counts, STEP_SEC, STEPS } from '../../src/admin/totals.js';

const at = (sec: number) => sec * 1000;

/** The steps that are not 0, counted from the present one backwards. */
function filled(numbers: readonly number[]): Record<number, number> {
  return Object.fromEntries(
    numbers.map((n, i) => [numbers.length - 1 - i, n] as const).filter(([, n]) => n !== 0),
  );
}

describe('the recent past of a scope', () => {
  it.each<{ name: string; counted: number[]; now: number; expected: Record<number, number> }>([
    { name: 'nothing', counted: [], now: 100, expected: {} },
    { name: 'one step', counted: [100, 101.9], now: 101.999, expected: { 0: 2 } },
    { name: 'a step later', counted: [100, 101], now: 102, expected: { 1: 2 } },
    { name: 'steps apart', counted: [100, 104, 105, 110], now: 110, expected: { 5: 1, 3: 2, 0: 1 } },
    { name: 'the oldest step that shows', counted: [100], now: 100 + 2 * 149 + 1.9, expected: { 149: 1 } },
    { name: 'what is over five minutes old', counted: [100], now: 400, expected: {} },
    { name: 'the same place in the ring, a round later', counted: [100, 400], now: 400, expected: { 0: 1 } },
    { name: 'a silence of hours', counted: [100, 101, 50_000], now: 50_003, expected: { 1: 1 } },
  ])('shows $name', ({ counted, now, expected }) => {
    const counts = new Counts(['allowed', 'refused']);
    for (const sec of counted) counts.add('allowed', at(sec));
    const { allowed, refused } = counts.recent(at(now));
    expect(filled(allowed)).toEqual(expected);
    expect(filled(refused)).toEqual({});
    expect([allowed.length, STEPS * STEP_SEC]).toEqual([STEPS, 300]);
  });

  it('keeps kinds apart', () => {
    const counts = new Counts(['allowed', 'refused', 'shadowRefused']);
    counts.add('allowed', at(7));
    counts.add('refused', at(7));
    counts.add('shadowRefused', at(8));
    const { allowed, refused, shadowRefused } = counts.recent(at(8));
    expect([filled(allowed), filled(refused), filled(shadowRefused)]).toEqual([{ 1: 1 }, { 1: 1 }, { 0: 1 }]);
    expect(counts.totals).toEqual({ allowed: 1, refused: 1, shadowRefused: 1 });
  });
});
