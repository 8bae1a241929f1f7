import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { createLimiter } from '../../../src/index.js';
import type { FailMode, Store } from '../../../src/index.js';
import { until } from './server.js';

export type Limiter = ReturnType<typeof createLimiter>;
export type Decision = Awaited<ReturnType<Limiter['consume']>>;

/** The limit of the rule that the load counts by: one hour is longer than any test, so nothing comes back. */
export const LIMIT = 60;
export const DEADLINE_MS = 250;
/** The slowest 1 % stay under twice the deadline; four times as much is allowed where tests share their cores. */
export const BOUND_MS = 2 * DEADLINE_MS * 4;

/** For spans in which nothing is wrong: a busy machine may keep a healthy server waiting for its turn. */
export const PATIENT_MS = 2_000;

export const FAIL_MODES = ['open', 'closed', 'local'] as const satisfies readonly FailMode[];

/** One request, as its caller saw it. */
export interface Outcome {
  readonly failMode: FailMode;
  readonly subject: string;
  /** When it began, by `performance.now()`. */
  readonly startedAt: number;
  readonly ms: number;
  readonly decision: Decision;
}

/** Three limiters over one store that differ in their fail mode only. */
export interface Subjected {
  readonly store: Store;
  readonly limiters: Readonly<Record<FailMode, Limiter>>;
  /** Messages of the store errors heard so far, with their numbers. */
  readonly errors: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

export function limitersOver(store: Store, deadlineMs = DEADLINE_MS): Subjected {
  const errors = new Map<string, number>();
  const make = (failMode: FailMode): Limiter => {
    const limiter = createLimiter({
      scope: `load.${failMode}`,
      limit: LIMIT,
      windowSec: 3_600,
      store,
      failMode,
      storeTimeoutMs: deadlineMs,
    });
    limiter.on('store-error', ({ error: { message } }) =>
      errors.set(message, (errors.get(message) ?? 0) + 1),
    );
    return limiter;
  };
  const limiters = { open: make('open'), closed: make('closed'), local: make('local') };
  return {
    store,
    limiters,
    errors,
    async close() {
      await Promise.all(FAIL_MODES.map(mode => limiters[mode].close()));
    },
  };
}

export interface LoadOptions {
  /** In all, over the three fail modes in turn. */
  readonly requests?: number;
  readonly perSecond?: number;
  /** Whom the i-th request is for; default: one subject for all. */
  readonly subject?: (i: number) => string;
}

/**
 * Requests that come whether or not earlier ones have been answered, as those of the world do. Resolves when all have been
 * answered; rejects if one throws, which no store failure may bring about.
 */
export async function load(
  { limiters }: Subjected,
  { requests = 510, perSecond = 400, subject = () => 'somebody' }: LoadOptions = {},
): Promise<readonly Outcome[]> {
  const pending: Promise<Outcome>[] = [];
  const begin = performance.now();
  for (let i = 0; i < requests; i++) {
    const ahead = begin + (i * 1_000) / perSecond - performance.now();
    if (ahead > 0) await wait(ahead);
    const failMode = FAIL_MODES[i % FAIL_MODES.length]!;
    const name = subject(i);
    const startedAt = performance.now();
    pending.push(
      limiters[failMode].consume(name).then(decision => ({
        failMode,
        subject: name,
        startedAt,
        ms: performance.now() - startedAt,
        decision,
      })),
    );
  }
  return Promise.all(pending);
}

/** Figures of a load, printed by every fault test. */
export interface Figures {
  readonly requests: number;
  readonly degraded: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export function figures(outcomes: readonly Outcome[]): Figures {
  const times = outcomes.map(({ ms }) => ms).sort((a, b) => a - b);
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return {
    requests: outcomes.length,
    degraded: outcomes.filter(({ decision }) => decision.degraded !== undefined).length,
    p50: at(0.5),
    p99: at(0.99),
    max: times.at(-1) ?? 0,
  };
}

/** One line: what was done, to whom, and what came of it. */
export function report(
  what: string,
  outcomes: readonly Outcome[],
  more: Readonly<Record<string, unknown>> = {},
): void {
  const { requests, degraded, p50, p99, max } = figures(outcomes);
  const extra = Object.entries(more).map(([name, value]) => `, ${name} ${String(value)}`);
  process.stdout.write(
    `  fault: ${what}: ${requests} requests, ${degraded} without the store, ` +
      `ms p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} max ${max.toFixed(1)}${extra.join('')}\n`,
  );
}

/** What every request is promised, whatever has happened to the store. */
export function expectPromisesKept(outcomes: readonly Outcome[]): void {
  const { max } = figures(outcomes);
  expect(max).toBeLessThan(BOUND_MS);
  for (const { failMode, decision } of outcomes) {
    if (decision.degraded === undefined) continue;
    expect(decision.degraded).toBe(failMode);
    if (failMode === 'open') expect(decision.allowed).toBe(true);
    if (failMode === 'closed') expect(decision).toMatchObject({ allowed: false, reason: 'unavailable' });
  }
  // The local store counts too, from nothing: one subject gets at most the limit out of it.
  for (const [subject, passed] of passes(outcomes, 'local', 'local')) {
    expect({ subject, passed: Math.min(passed, LIMIT) }).toEqual({ subject, passed });
  }
}

/** How many requests of each subject the store itself let pass (or, with `by` local, the store of this process). */
export function passes(
  outcomes: readonly Outcome[],
  failMode: FailMode,
  by?: 'local',
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { subject, decision, failMode: mode } of outcomes) {
    if (mode !== failMode || decision.degraded !== by || !decision.allowed) continue;
    counts.set(subject, (counts.get(subject) ?? 0) + 1);
  }
  return counts;
}

/** No subject got more out of the store than the limit, and whoever asked often enough while it was healthy got all of it. */
export function expectLimitHeld(outcomes: readonly Outcome[], exactly = false): void {
  for (const failMode of FAIL_MODES) {
    for (const [subject, passed] of passes(outcomes, failMode)) {
      const expected = exactly ? LIMIT : Math.min(passed, LIMIT);
      expect({ failMode, subject, passed }).toEqual({ failMode, subject, passed: expected });
    }
  }
}

let probes = 0;

/** Waits until every limiter counts in the store again; the milliseconds that took. */
export async function recovered({ limiters }: Subjected, timeoutMs = 15_000): Promise<number> {
  const begin = performance.now();
  for (const failMode of FAIL_MODES) {
    await until(
      `the store decides again (fail mode ${failMode})`,
      // A subject of its own each time: a store that can only read still answers about a known one.
      async () => (await limiters[failMode].consume(`prober ${String(probes++)}`)).degraded === undefined,
      timeoutMs,
    );
  }
  return performance.now() - begin;
}

/** A healthy span: exactly the limit passes, of a subject of its own, and the store decides every time. */
export async function expectHealthy({ store }: Subjected, subject: string): Promise<void> {
  const patient = limitersOver(store, PATIENT_MS);
  const outcomes = await load(patient, {
    requests: 3 * (LIMIT + 20),
    perSecond: 2_000,
    subject: () => subject,
  });
  expectNoneDegraded(patient, outcomes);
  expectLimitHeld(outcomes, true);
}

/** The store decided every time; where not, the failure says what was wrong. */
export function expectNoneDegraded({ errors }: Subjected, outcomes: readonly Outcome[]): void {
  const { degraded } = figures(outcomes);
  expect({ degraded, errors: Object.fromEntries(errors) }).toEqual({ degraded: 0, errors: {} });
}
