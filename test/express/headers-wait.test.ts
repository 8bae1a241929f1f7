import fc from 'fast-check';
import { algorithms } from '../../src/algorithms/index.js';
import type { AlgorithmName } from '../../src/algorithms/index.js';
import { Check } from '../../src/core/check.js';
import type { Cell } from '../../src/core/cell.js';
import { decideCells } from '../../src/core/decide-cells.js';
import { fold } from '../../src/core/decision.js';
import type { Decision } from '../../src/core/decision.js';
import { RuleTemplate } from '../../src/core/rule.js';
import type { Rule } from '../../src/core/rule.js';
import { hashSubject } from '../../src/core/subject.js';
import { decisionHeaders } from '../../src/express/headers.js';
import { NOON } from '../support/decisions.js';

/** One subject under some rules, on a clock that the test turns. */
class Server {
  now = NOON;
  #cells: readonly (Cell | undefined)[] = [];
  readonly #rules: readonly Rule[];
  readonly #subject = hashSubject('alice', {});

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  request(cost: number): Decision {
    const checks = this.#rules.map(rule => new Check(rule, this.#subject, { type: 'consume', cost }));
    this.#cells = decideCells(checks, this.#cells, this.now);
    return fold(
      checks.map(({ described }) => described),
      this.now,
    );
  }
}

const rules = fc
  .uniqueArray(
    fc.record({
      scope: fc.constantFrom('a', 'b', 'c'),
      algorithm: fc.constantFrom(...(Object.keys(algorithms) as AlgorithmName[])),
      limit: fc.integer({ min: 1, max: 6 }),
      windowMs: fc.integer({ min: 10, max: 5000 }),
      blockMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 9000 })),
    }),
    { selector: rule => rule.scope, minLength: 1, maxLength: 3 },
  )
  .map(list =>
    list.map(({ scope, algorithm, limit, windowMs, blockMs }) =>
      new RuleTemplate({
        scope,
        algorithm,
        ...(algorithm === 'leaky-bucket' ? { burst: Math.ceil(limit / 2) } : {}),
      }).at({ limit, windowSec: windowMs / 1000, blockSec: blockMs / 1000 }),
    ),
  );
const requests = fc.array(fc.record({ after: fc.nat(1500), cost: fc.nat(3) }), {
  minLength: 1,
  maxLength: 40,
});

/** Sends the requests; whoever is refused obeys the headers as `wake` reads them, and comes back with the same request. */
function obey(wake: (headers: Record<string, string>, now: number) => number | undefined): void {
  let refusals = 0;
  fc.assert(
    fc.property(rules, requests, fc.nat(999), (list, sequence, fraction) => {
      const server = new Server(list);
      server.now += fraction;
      for (const { after, cost } of sequence) {
        server.now += after;
        const decision = server.request(cost);
        if (decision.allowed) continue;
        const then = wake(decisionHeaders(decision, { retryAfterMs: true }), server.now);
        // No wait is named exactly when none would help.
        expect(then === undefined).toBe(decision.retryAfterMs === null);
        if (then === undefined) continue;
        refusals += 1;
        server.now = then;
        expect(server.request(cost).allowed).toBe(true);
      }
    }),
    { numRuns: 1000 },
  );
  expect(refusals).toBeGreaterThan(1000);
}

const number = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text);

describe('a client that waits as told is not refused again', () => {
  test('Retry-After, to the second', () => {
    obey((headers, now) => {
      const seconds = number(headers['Retry-After']);
      return seconds === undefined ? undefined : now + seconds * 1000;
    });
  });

  test('X-RateLimit-Reset, at the very beginning of that second', () => {
    obey(headers => {
      const seconds = number(headers['X-RateLimit-Reset']);
      return seconds === undefined ? undefined : seconds * 1000;
    });
  });

  test('retry-after-ms, to the millisecond', () => {
    obey((headers, now) => {
      const ms = number(headers['retry-after-ms']);
      return ms === undefined ? undefined : now + ms;
    });
  });

  test('Retry-After is the shortest whole number of seconds that does', () => {
    fc.assert(
      fc.property(rules, requests, (list, sequence) => {
        const server = new Server(list);
        for (const { after, cost } of sequence) {
          server.now += after;
          const decision = server.request(cost);
          const seconds = Number(decisionHeaders(decision)['Retry-After'] ?? 1);
          if (decision.allowed || seconds === 1) continue;
          server.now += (seconds - 1) * 1000;
          expect(server.request(cost).allowed).toBe(false);
        }
      }),
      { numRuns: 500 },
    );
  });
});
