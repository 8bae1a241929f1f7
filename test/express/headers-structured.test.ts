import fc from 'fast-check';
import { parseList } from 'structured-headers';
import { decisionHeaders } from '../../src/express/headers.js';
import type { RuleReading } from '../../src/core/decision.js';
import { decided, reading, refusal } from '../support/decisions.js';

/** The members of a field as an RFC 9651 parser reads them: the name, which must be a String, and the parameters. */
function members(field: string | undefined): [name: unknown, parameters: Record<string, unknown>][] {
  return parseList(field ?? '').map(([name, parameters]) => [name, Object.fromEntries(parameters)]);
}

const policiesOf = (readings: RuleReading[]) =>
  members(decisionHeaders(decided(readings))['RateLimit-Policy']);
const statesOf = (readings: RuleReading[]) => members(decisionHeaders(decided(readings))['RateLimit']);

describe('a full RFC 9651 parser reads the fields back', () => {
  test.each([
    ['api.ip', 'api.ip'],
    ['a b', 'a b'],
    ['say "hi"', 'say "hi"'],
    ['back\\slash', 'back\\slash'],
    ['a, b; c=d', 'a, b; c=d'],
    ['50%', '50%25'],
    ['%C3%A9', '%25C3%25A9'],
    ['é', '%C3%A9'],
    ['限流', '%E9%99%90%E6%B5%81'],
    ['🔒', '%F0%9F%94%92'],
    ['tab\there', 'tab%09here'],
    ['\x7f', '%7F'],
  ])('scope %j is the policy named %j', (scope, name) => {
    expect(policiesOf([reading({ scope })])).toEqual([[name, { q: 120, w: 60 }]]);
    expect(statesOf([reading({ scope })])).toEqual([[name, { r: 119, t: 60 }]]);
  });

  const scopes = fc.string({ unit: 'binary', minLength: 1, maxLength: 128 });
  const amounts = fc.oneof(fc.nat(1000), fc.integer({ min: 0, max: 2 ** 52 }));
  const waits = fc.oneof(fc.constant(null), fc.nat(5000), fc.integer({ min: 0, max: 3.2e11 }));
  const readings = fc
    .record({
      scope: scopes,
      refused: fc.boolean(),
      limit: amounts,
      remaining: amounts,
      windowMs: fc.integer({ min: 1, max: 3.2e11 }),
      retryAfterMs: waits,
      moreAfterMs: waits,
      resetAfterMs: waits,
    })
    .map(({ refused, ...numbers }) =>
      refused ? refusal(numbers) : reading({ ...numbers, retryAfterMs: 0 }),
    );
  const lists = fc.uniqueArray(readings, { minLength: 1, maxLength: 5, selector: r => r.scope });

  test('every scope and number, in every list of rules', () => {
    fc.assert(
      fc.property(lists, list => {
        const policies = policiesOf(list);
        const states = statesOf(list);
        expect(policies.map(([name]) => name)).toEqual(states.map(([name]) => name));
        // A name stands for one scope: decoding gives it back.
        expect(states.map(([name]) => decodeURIComponent(String(name)))).toEqual(list.map(r => r.scope));
        for (const [, parameters] of [...policies, ...states]) {
          for (const value of Object.values(parameters)) {
            expect(Number.isInteger(value) && Number(value) >= 0 && Number(value) < 1e15).toBe(true);
          }
        }
        list.forEach(({ limit, windowMs, remaining, moreAfterMs }, i) => {
          const cap = 999_999_999_999_999;
          expect(policies[i]?.[1]).toEqual({ q: Math.min(limit, cap), w: Math.ceil(windowMs / 1000) });
          expect(states[i]?.[1]['r']).toBe(Math.min(remaining, cap));
          expect('t' in (states[i]?.[1] ?? {})).toBe(moreAfterMs !== null && moreAfterMs > 0);
        });
      }),
      { numRuns: 500 },
    );
  });

  test('no t is later than Retry-After', () => {
    fc.assert(
      fc.property(lists, list => {
        const retryAfter = decisionHeaders(decided(list))['Retry-After'];
        if (retryAfter === undefined) return;
        for (const [, { t = 0 }] of statesOf(list)) expect(Number(t)).toBeLessThanOrEqual(Number(retryAfter));
      }),
      { numRuns: 500 },
    );
  });

  test('a lone surrogate, which no rule can have as its scope, breaks nothing', () => {
    expect(policiesOf([reading({ scope: 'a\ud800' })])).toEqual([['a%EF%BF%BD', { q: 120, w: 60 }]]);
  });
});
