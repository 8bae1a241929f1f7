import fc from 'fast-check';
import { LOOK } from '../../src/core/operation.js';
import type { Operation } from '../../src/core/operation.js';
import type { Reading } from '../../src/core/decision.js';
import { RuleTemplate } from '../../src/core/rule.js';
import type { Rule, RuleSettings, Plan } from '../../src/core/rule.js';
import { NOON } from './decisions.js';

/** Runs of a property; `LIMITKEEPER_SOAK=20` runs it twenty times as often. */
export const runs = (count: number): { numRuns: number } => ({
  numRuns: count * Number(process.env['LIMITKEEPER_SOAK'] ?? 1),
});

export const ALGORITHMS = [
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'token-bucket',
  'leaky-bucket',
] as const;

type Algorithm = (typeof ALGORITHMS)[number];

export type RuleParts = RuleSettings & Plan;

export function ruleFrom({ limit, windowSec, ...settings }: RuleParts): Rule {
  return new RuleTemplate(settings).at({ limit, windowSec });
}

const isBucket = (algorithm: Algorithm) => algorithm.endsWith('bucket');

const windowMs = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(1, 2, 3, 7, 10, 100, 997, 1000, 60_000) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 5000 }) },
);

/** Small rules, in which every edge is near. */
export const smallRule = (algorithms: readonly Algorithm[] = ALGORITHMS): fc.Arbitrary<RuleParts> =>
  fc
    .record({
      algorithm: fc.constantFrom(...algorithms),
      window: windowMs,
      limit: fc.integer({ min: 0, max: 12 }),
      burst: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
      epoch: fc.boolean(),
      holdMs: fc.constantFrom(1, 10, 500, 1000, 60_000),
      block: fc.constantFrom<number | number[]>(0, 0, 0.05, 30, [1, 5, 20]),
    })
    .map(({ algorithm, window, limit: drawn, burst: drawnBurst, epoch, holdMs, block }) => {
      const bucket = isBucket(algorithm);
      const limit = bucket ? Math.max(1, drawn) : drawn;
      const least = limit > window ? Math.ceil(limit / window) + 1 : 1;
      const capacity = drawnBurst ?? (algorithm === 'leaky-bucket' ? 1 : limit);
      const burst = bucket ? Math.max(least, capacity) : undefined;
      return {
        scope: 's',
        algorithm,
        limit,
        windowSec: window / 1000,
        holdSec: holdMs / 1000,
        blockSec: block,
        ...(burst === undefined ? {} : { burst }),
        ...(algorithm === 'fixed-window' && epoch ? { align: 'epoch' as const } : {}),
      };
    });

/** Rules at the edge of what is exact: a million units a second, windows of years, capacity × window near 2^52. */
export const extremeRule: fc.Arbitrary<RuleParts> = fc
  .record({
    algorithm: fc.constantFrom(...ALGORITHMS),
    window: fc.oneof(
      fc.constantFrom(1000, 31_536_000_000, 315_360_000_000, 86_400_000),
      fc.integer({ min: 1, max: 316_224_000_000 }),
    ),
    share: fc.oneof(fc.constant(1), fc.double({ min: 0.0001, max: 1, noNaN: true })),
    burstShare: fc.double({ min: 0.01, max: 1, noNaN: true }),
  })
  .map(({ algorithm, window, share, burstShare }) => {
    const most = Math.floor(2 ** 52 / window);
    const limit = Math.max(1, Math.floor(Math.min(most, algorithm === 'sliding-log' ? 20 : 1e9) * share));
    const settings = { scope: 's', algorithm, limit, windowSec: window / 1000, holdSec: 60 };
    if (!isBucket(algorithm)) return settings;
    const least = Math.ceil(limit / window) + 1;
    return { ...settings, burst: Math.max(Math.min(most, least), Math.floor(most * burstShare)) };
  })
  // Where the burst that a rate needs does not fit, there is no such rule.
  .filter(parts => {
    try {
      return ruleFrom(parts).limit > 0;
    } catch {
      return false;
    }
  });

/** How long before a step: a share of the window, or as told by the step before, with some milliseconds more or less. */
export type Gap =
  | { readonly windows: number }
  | { readonly ms: number }
  | { readonly told: 'retryAfterMs' | 'moreAfterMs' | 'resetAfterMs'; readonly offset: number };

export interface Step {
  readonly gap: Gap;
  readonly type: Operation['type'];
  /** A share of the capacity for costs; rounded up, so that 0.0001 is one unit. */
  readonly cost: number;
  /** Which of the receipts still good a settle or refund takes. */
  readonly receipt: number;
}

const gap: fc.Arbitrary<Gap> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ ms: fc.constantFrom(0, 0, 1, 2) }) },
  { weight: 3, arbitrary: fc.record({ windows: fc.double({ min: 0, max: 2.2, noNaN: true }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      told: fc.constantFrom('retryAfterMs', 'retryAfterMs', 'moreAfterMs', 'moreAfterMs', 'resetAfterMs'),
      offset: fc.constantFrom(0, 0, -1, 1),
    }),
  },
  { weight: 1, arbitrary: fc.record({ ms: fc.constantFrom(500, 30_000, 86_400_000, 86_399_999) }) },
);

const cost = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0.0001) },
  { weight: 2, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom(0, 1, 1.1, 2.5) },
);

export const steps = (types: readonly Operation['type'][], maxLength = 40): fc.Arbitrary<readonly Step[]> =>
  fc.array(fc.record({ gap, type: fc.constantFrom(...types), cost, receipt: fc.nat(5) }), {
    maxLength,
    size: 'max',
  });

export const ALL_OPERATIONS = [
  ...Array.from({ length: 8 }, () => 'consume' as const),
  ...(['peek', 'reserve', 'reserve', 'settle', 'settle', 'charge', 'refund', 'refund'] as const),
  ...(['block', 'unblock', 'reset', 'forgive'] as const),
];

/** What a step took, in one rule. */
interface Taken {
  readonly kind: 'consume' | 'reserve';
  readonly at: number;
  readonly units: number;
}

export interface Played {
  readonly now: number;
  readonly operation: Operation;
  readonly reading: Reading;
}

/** The year 142,000: no later time is played. Together with any wait of ten years it is still a whole number in a double. */
const LAST = 2 ** 52;

/**
 * Plays steps on one rule: `ask` answers each operation at its time. Times are those that the answers tell, so that the
 * sequence keeps to the edges; receipts are good once. Ends early where a time would come after {@link LAST}.
 */
export function play(
  rule: Rule,
  sequence: readonly Step[],
  ask: (operation: Operation, now: number) => Reading,
): Played[] {
  const taken: Taken[] = [];
  const played: Played[] = [];
  let now = NOON;
  for (const step of sequence) {
    now += waitOf(step.gap, rule, played.at(-1)?.reading);
    if (now > LAST) break;
    const operation = operationOf(step, rule, taken);
    const reading = ask(operation, now);
    if (reading.allowed && (operation.type === 'consume' || operation.type === 'reserve')) {
      taken.push({ kind: operation.type, at: now, units: operation.cost });
    }
    played.push({ now, operation, reading });
  }
  return played;
}

function waitOf(wait: Gap, rule: Rule, last: Reading | undefined): number {
  if ('ms' in wait) return wait.ms;
  if ('windows' in wait) return Math.floor(wait.windows * rule.windowMs);
  return Math.max(0, (last?.[wait.told] ?? 0) + wait.offset);
}

function operationOf({ type, cost: share, receipt }: Step, rule: Rule, taken: Taken[]): Operation {
  const units = Math.ceil(share * rule.capacity);
  switch (type) {
    case 'consume':
    case 'peek':
    case 'reserve':
      return { type, cost: units };
    case 'charge':
      return { type, units };
    case 'block':
      return { type, ms: share > 1 ? null : 1 + Math.floor(share * 10_000) };
    case 'settle':
    case 'refund': {
      const kind = type === 'settle' ? 'reserve' : 'consume';
      const good = taken.filter(entry => entry.kind === kind);
      const chosen = good[receipt % Math.max(1, good.length)];
      if (chosen === undefined) return LOOK;
      taken.splice(taken.indexOf(chosen), 1);
      if (type === 'settle') return { type, at: chosen.at, held: chosen.units, actual: units };
      return { type, at: chosen.at, units: Math.min(chosen.units, units) };
    }
    default:
      return { type };
  }
}
