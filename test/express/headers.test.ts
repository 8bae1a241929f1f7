import { decisionHeaders, mergedHeaders } from '../../src/express/headers.js';
import type { HeaderOptions } from '../../src/express/headers.js';
import type { Decision } from '../../src/core/decision.js';
import { decided, degraded, NOON, reading, refusal } from '../support/decisions.js';

// NOON is 1764585780 s; each expected time below is added up by hand.

describe('the headers of one decision', () => {
  const table: readonly [promise: string, decision: Decision, expected: Record<string, string>][] = [
    [
      'allowed: limit, remaining, reset, and both structured fields',
      decided([reading()]),
      {
        'X-RateLimit-Limit': '120',
        'X-RateLimit-Remaining': '119',
        'X-RateLimit-Reset': '1764585840',
        'RateLimit-Policy': '"api.ip";q=120;w=60',
        RateLimit: '"api.ip";r=119;t=60',
      },
    ],
    [
      'refused: Reset is now + Retry-After',
      decided([refusal({ resetAfterMs: 60_000 })]),
      {
        'X-RateLimit-Limit': '120',
        'X-RateLimit-Remaining': '0',
        'X-RateLimit-Reset': '1764585810',
        'RateLimit-Policy': '"api.ip";q=120;w=60',
        RateLimit: '"api.ip";r=0;t=30',
        'Retry-After': '30',
      },
    ],
    [
      'every enforced rule is a policy; the trio is that of the binding one; a shadow rule is not mentioned',
      decided([
        reading({ scope: 'minute', limit: 50, remaining: 40, moreAfterMs: 500 }),
        reading({ scope: 'rehearsal', limit: 1, remaining: 0, shadow: true }),
        reading({ scope: 'day', limit: 1000, remaining: 7, windowMs: 86_400_000, resetAfterMs: 3_600_000 }),
      ]),
      {
        'X-RateLimit-Limit': '1000',
        'X-RateLimit-Remaining': '7',
        'X-RateLimit-Reset': '1764589380',
        'RateLimit-Policy': '"minute";q=50;w=60, "day";q=1000;w=86400',
        RateLimit: '"minute";r=40;t=1, "day";r=7;t=60',
      },
    ],
    ['no rule took part: nothing', decided([]), {}],
    [
      'only shadow rules took part: nothing, even when they would refuse',
      decided([refusal({ shadow: true })]),
      {},
    ],
    ['the store failed open: nothing', degraded('open'), {}],
    [
      'the store failed closed: Retry-After only, rounded up',
      degraded('closed', 1001),
      { 'Retry-After': '2' },
    ],
    [
      'the store failed closed and nobody knows for how long: at least a second',
      degraded('closed', 0),
      { 'Retry-After': '1' },
    ],
    [
      'refused for ever: no Retry-After, no Reset, no time until more',
      decided([refusal({ reason: 'blocked', retryAfterMs: null, moreAfterMs: null, resetAfterMs: null })]),
      {
        'X-RateLimit-Limit': '120',
        'X-RateLimit-Remaining': '0',
        'RateLimit-Policy': '"api.ip";q=120;w=60',
        RateLimit: '"api.ip";r=0',
      },
    ],
    [
      'a cost over the capacity never passes, although the counter empties in a minute',
      decided([refusal({ reason: 'cost', retryAfterMs: null, remaining: 119, resetAfterMs: 60_000 })]),
      {
        'X-RateLimit-Limit': '120',
        'X-RateLimit-Remaining': '119',
        'RateLimit-Policy': '"api.ip";q=120;w=60',
        RateLimit: '"api.ip";r=119;t=30',
      },
    ],
    [
      'only reservations in the way: a second as advice, however long they may hold',
      decided([refusal({ reason: 'held', retryAfterMs: 90_000, moreAfterMs: 90_000, resetAfterMs: 95_000 })]),
      {
        'X-RateLimit-Limit': '120',
        'X-RateLimit-Remaining': '0',
        'X-RateLimit-Reset': '1764585781',
        'RateLimit-Policy': '"api.ip";q=120;w=60',
        RateLimit: '"api.ip";r=0;t=1',
        'Retry-After': '1',
      },
    ],
    [
      'full again: no t',
      decided([reading({ remaining: 120, moreAfterMs: 0, resetAfterMs: 0 })]),
      {
        'X-RateLimit-Limit': '120',
        'X-RateLimit-Remaining': '120',
        'X-RateLimit-Reset': '1764585780',
        'RateLimit-Policy': '"api.ip";q=120;w=60',
        RateLimit: '"api.ip";r=120',
      },
    ],
    [
      'a limit of 0: a policy of nothing',
      decided([
        refusal({ limit: 0, reason: 'cost', retryAfterMs: null, moreAfterMs: null, resetAfterMs: 0 }),
      ]),
      {
        'X-RateLimit-Limit': '0',
        'X-RateLimit-Remaining': '0',
        'RateLimit-Policy': '"api.ip";q=0;w=60',
        RateLimit: '"api.ip";r=0',
      },
    ],
    [
      'the fifth wrong password: what stands after the charge, whoever answers the request',
      decided([
        refusal({
          scope: 'login.password.email_ip',
          reason: 'blocked',
          limit: 5,
          windowMs: 900_000,
          retryAfterMs: 900_000,
          moreAfterMs: 900_000,
          resetAfterMs: 900_000,
        }),
      ]),
      {
        'X-RateLimit-Limit': '5',
        'X-RateLimit-Remaining': '0',
        'X-RateLimit-Reset': '1764586680',
        'RateLimit-Policy': '"login.password.email_ip";q=5;w=900',
        RateLimit: '"login.password.email_ip";r=0;t=900',
        'Retry-After': '900',
      },
    ],
  ];

  test.each(table)('%s', (_promise, decision, expected) => {
    expect(decisionHeaders(decision)).toEqual(expected);
  });
});

describe('rounding', () => {
  const table: readonly [at: number, retryAfterMs: number, retryAfter: string, reset: string][] = [
    [NOON, 1, '1', '1764585781'],
    [NOON, 1000, '1', '1764585781'],
    [NOON, 1001, '2', '1764585782'],
    // 0.4 s into the second, free 0.5 s later: Retry-After 1 ends at …81.4, so sleeping until …82 is what obeys both.
    [NOON + 400, 500, '1', '1764585782'],
    [NOON + 999, 1, '1', '1764585782'],
    [NOON + 1, 59_999, '60', '1764585841'],
  ];

  test.each(table)(
    'refused at %d for %d ms: Retry-After %s, Reset %s',
    (at, retryAfterMs, retryAfter, reset) => {
      expect(decisionHeaders(decided([refusal({ retryAfterMs })], at))).toMatchObject({
        'Retry-After': retryAfter,
        'X-RateLimit-Reset': reset,
      });
    },
  );

  test.each([
    [NOON, 1, '1764585781'],
    [NOON + 400, 600, '1764585781'],
    [NOON + 400, 601, '1764585782'],
  ])('allowed at %d, empty again %d ms later: Reset %s', (at, resetAfterMs, reset) => {
    expect(decisionHeaders(decided([reading({ resetAfterMs })], at))['X-RateLimit-Reset']).toBe(reset);
  });

  test('windows and waits of a part of a second are rounded up to a second', () => {
    const { RateLimit, 'RateLimit-Policy': policy } = decisionHeaders(
      decided([reading({ windowMs: 500, moreAfterMs: 1 })]),
    );
    expect([policy, RateLimit]).toEqual(['"api.ip";q=120;w=1', '"api.ip";r=119;t=1']);
  });

  test('a structured-field integer has at most 15 digits: 2^52 is told as 999999999999999', () => {
    const { RateLimit, 'RateLimit-Policy': policy } = decisionHeaders(
      decided([reading({ limit: 2 ** 52, remaining: 2 ** 52 - 1, windowMs: 1, moreAfterMs: 1 })]),
    );
    expect([policy, RateLimit]).toEqual(['"api.ip";q=999999999999999;w=1', '"api.ip";r=999999999999999;t=1']);
  });
});

describe('t is never later than Retry-After', () => {
  test('a request that costs nothing may come back before there is more', () => {
    // In debt: a cost of 0 fits again after 10 s, a cost of 1 only after 12 s.
    const headers = decisionHeaders(decided([refusal({ retryAfterMs: 10_000, moreAfterMs: 12_000 })]));
    expect(headers).toMatchObject({ 'Retry-After': '10', RateLimit: '"api.ip";r=0;t=10' });
  });

  test('nor are those of the rules beside the refusing one', () => {
    const headers = decisionHeaders(
      decided([
        refusal({ scope: 'second', retryAfterMs: 700, moreAfterMs: 700 }),
        reading({ scope: 'day', moreAfterMs: 3_600_000 }),
      ]),
    );
    expect(headers).toMatchObject({
      'Retry-After': '1',
      RateLimit: '"second";r=0;t=1, "day";r=119;t=1',
    });
  });
});

describe('a refusal by several rules', () => {
  const minute = refusal({ scope: 'minute', retryAfterMs: 30_000 });
  const day = refusal({ scope: 'day', limit: 1000, retryAfterMs: 7_200_000 });
  const held = refusal({ scope: 'held', reason: 'held', retryAfterMs: 60_000 });

  test.each([
    ['the longest wait counts', [minute, day], '7200'],
    ['in either order', [day, minute], '7200'],
    // A second later the held rule may pass, and the minute rule would surely refuse again.
    ['the advice of a held rule hides no certain wait', [held, minute], '30'],
    [
      'a held rule alone keeps its advice beside a shorter wait',
      [held, { ...minute, retryAfterMs: 400 }],
      '1',
    ],
  ])('%s', (_promise, readings, retryAfter) => {
    expect(decisionHeaders(decided(readings))['Retry-After']).toBe(retryAfter);
  });

  test('one that never passes leaves no Retry-After', () => {
    const never = refusal({ scope: 'never', reason: 'cost', retryAfterMs: null });
    for (const readings of [
      [minute, never],
      [never, minute],
    ]) {
      const headers = decisionHeaders(decided(readings));
      expect(headers).not.toHaveProperty('Retry-After');
      expect(headers).not.toHaveProperty('X-RateLimit-Reset');
    }
  });
});

describe('options', () => {
  const names = (options: HeaderOptions, decision = decided([refusal()])): string[] =>
    Object.keys(decisionHeaders(decision, options)).sort();
  const LEGACY = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
  const STANDARD = ['RateLimit', 'RateLimit-Policy'];

  test.each<[HeaderOptions, string[]]>([
    [{}, [...STANDARD, 'Retry-After', ...LEGACY]],
    [{ legacy: false }, [...STANDARD, 'Retry-After']],
    [{ standard: false }, ['Retry-After', ...LEGACY]],
    [{ legacy: false, standard: false }, ['Retry-After']],
    [{ legacy: false, standard: false, retryAfterMs: true }, ['Retry-After', 'retry-after-ms']],
    [false, []],
  ])('%j', (options, expected) => {
    expect(names(options)).toEqual(expected);
  });

  test('false silences a failed store, too', () => {
    expect(names(false, degraded('closed'))).toEqual([]);
  });

  test.each([
    ['to the millisecond', decided([refusal({ retryAfterMs: 1234 })]), '1234'],
    ['the advice of a held rule is a second', decided([refusal({ reason: 'held' })]), '1000'],
    ['unless it is free sooner', decided([refusal({ reason: 'held', retryAfterMs: 70 })]), '70'],
    ['of a failed store', degraded('closed', 250), '250'],
    ['at least 1', degraded('closed', 0), '1'],
  ])('retry-after-ms: %s', (_promise, decision, ms) => {
    expect(decisionHeaders(decision, { retryAfterMs: true })['retry-after-ms']).toBe(ms);
  });

  test('retry-after-ms comes on refusals only, and not on one for ever', () => {
    expect(decisionHeaders(decided([reading()]), { retryAfterMs: true })).not.toHaveProperty(
      'retry-after-ms',
    );
    const never = decided([refusal({ retryAfterMs: null })]);
    expect(decisionHeaders(never, { retryAfterMs: true })).not.toHaveProperty('retry-after-ms');
  });
});

describe('several limiters on one response', () => {
  const token = decided([reading({ scope: 'token', limit: 300, remaining: 10 })]);
  const ip = decided([reading({ scope: 'ip', limit: 120, remaining: 3 })]);
  const refused = decided([refusal({ scope: 'refused', limit: 7, remaining: 5 })]);
  const merge = (...decisions: Decision[]): Record<string, string> =>
    mergedHeaders(decisions.map(told => ({ told })));

  test.each<[string, Decision[], string]>([
    ['the fewest remaining', [token, ip], '120'],
    ['whichever came first', [ip, token], '120'],
    ['refusing before allowing, whatever remains', [ip, refused], '7'],
    ['the first of equals', [ip, decided([reading({ limit: 9, remaining: 3 })])], '120'],
    [
      'the longer wait of two that have nothing left',
      [decided([refusal()]), decided([refusal({ limit: 5, retryAfterMs: 31_000 })])],
      '5',
    ],
    ['one that has nothing to say takes nothing away', [ip, decided([]), degraded('open')], '120'],
  ])('P54 the trio shows the tightest: %s', (_promise, decisions, limit) => {
    expect(merge(...decisions)['X-RateLimit-Limit']).toBe(limit);
  });

  test('P53 the structured fields list every policy', () => {
    expect(merge(token, ip, refused)).toMatchObject({
      'RateLimit-Policy': '"token";q=300;w=60, "ip";q=120;w=60, "refused";q=7;w=60',
      RateLimit: '"token";r=10;t=30, "ip";r=3;t=30, "refused";r=5;t=30',
    });
  });

  test('the draft allows a policy once: two limiters of one scope show the tighter', () => {
    const wide = decided([reading({ limit: 300, remaining: 200 })]);
    const tight = decided([reading({ limit: 10, remaining: 2 })]);
    for (const decisions of [
      [wide, tight],
      [tight, wide],
    ]) {
      expect(merge(...decisions)).toMatchObject({
        'RateLimit-Policy': '"api.ip";q=10;w=60',
        RateLimit: '"api.ip";r=2;t=60',
      });
    }
  });

  test('Retry-After is the longest wait, and Reset agrees with it', () => {
    const short = decided([refusal({ scope: 'short', retryAfterMs: 10_000, remaining: 0 })]);
    const long = decided([refusal({ scope: 'long', retryAfterMs: 900_000, remaining: 2 })]);
    expect(merge(short, long)).toMatchObject({
      'Retry-After': '900',
      'X-RateLimit-Reset': '1764586680',
    });
  });

  test('one limiter that never lets it pass leaves no wait to tell', () => {
    const never = decided([refusal({ scope: 'never', reason: 'cost', retryAfterMs: null })]);
    const soon = decided([refusal({ scope: 'soon' })]);
    for (const decisions of [
      [never, soon],
      [soon, never],
    ]) {
      expect(merge(...decisions)).not.toHaveProperty('Retry-After');
    }
  });

  test('a store that failed closed adds its Retry-After to what the others say', () => {
    expect(merge(ip, degraded('closed', 1000))).toEqual({
      'X-RateLimit-Limit': '120',
      'X-RateLimit-Remaining': '3',
      'X-RateLimit-Reset': '1764585840',
      'RateLimit-Policy': '"ip";q=120;w=60',
      RateLimit: '"ip";r=3;t=1',
      'Retry-After': '1',
    });
  });

  test('each limiter speaks in the families that are on for it', () => {
    const headers = mergedHeaders([
      { told: token, headers: { standard: false } },
      { told: ip, headers: { legacy: false } },
      { told: refused, headers: false },
    ]);
    expect(headers).toEqual({
      'X-RateLimit-Limit': '300',
      'X-RateLimit-Remaining': '10',
      'X-RateLimit-Reset': '1764585840',
      'RateLimit-Policy': '"ip";q=120;w=60',
      RateLimit: '"ip";r=3;t=60',
    });
  });

  test('none at all: no headers', () => {
    expect(mergedHeaders([])).toEqual({});
  });
});
