import { storeError } from '../../core/errors.js';
import { decides } from '../../core/operation.js';
import type { Check } from '../../core/check.js';
import type { Reading } from '../../core/decision.js';
import type { Caller } from './caller.js';
import type { BlockNews, Outcome } from './outcome.js';
import type { Work, WorkItem } from './work.js';

/** Units claimed by a process that then dies are held at least this long, and at most twice as long. */
const CLAIM_MS = 5000;

/** The items of one subject; `places` are their indexes in the batch. */
interface Group {
  readonly items: readonly Check[];
  readonly places: readonly number[];
}

/** A group after its first call. */
interface Claimed extends Group {
  readonly outcome: Outcome;
  readonly allowed: boolean;
}

/**
 * Decides a batch about several subjects where no script may touch two of them: on a cluster they lie in different slots.
 *
 * The units of each subject are put on hold, slot by slot; when all could be, they are charged, and else let go. So no limit
 * is ever passed, but a call that is refused in the end may hold units of another rule for a moment, and make a call that
 * comes in between be refused as `held`. The first subject's server tells the time at which all of it is decided. When a
 * call fails half-way, what it holds lapses by itself; what it had charged stays charged.
 */
export async function decideSpread(
  caller: Caller,
  checks: readonly Check[],
  expires: number,
): Promise<Outcome> {
  const [first, ...others] = groupsOf(checks);
  if (first === undefined) throw storeError('ERR_LIMITKEEPER_STORE', 'an empty batch has no time.');
  const opening = await call(caller, first, claim, expires);
  const { at } = opening.outcome;
  const isOpen = opening.allowed;
  const next = await Promise.allSettled(
    others.map(group => call(caller, group, isOpen ? claim : judge, expires, at)),
  );
  const answered = [
    opening,
    ...next.flatMap(result => (result.status === 'fulfilled' ? [result.value] : [])),
  ];
  const failed = next.find(result => result.status === 'rejected');
  // Somebody who no longer waits must not be charged.
  const isLate = performance.now() > expires;
  const isGranted = answered.every(({ allowed }) => allowed) && failed === undefined && !isLate;
  // Refused by the first subject: the others were only judged, and nothing is on hold.
  const ended = isOpen
    ? await conclude(caller, answered, isGranted ? 'commit' : 'release', isGranted ? expires : Infinity, at)
    : answered;
  if (failed !== undefined) throw failed.reason;
  if (isLate) throw storeError('ERR_LIMITKEEPER_STORE_TIMEOUT', 'the deadline passed between two servers.');
  return merge(checks.length, at, ended);
}

function groupsOf(checks: readonly Check[]): Group[] {
  const groups = new Map<string, { items: Check[]; places: number[] }>();
  checks.forEach((item, place) => {
    const group = groups.get(item.subject.hash) ?? { items: [], places: [] };
    groups.set(item.subject.hash, group);
    group.items.push(item);
    group.places.push(place);
  });
  return [...groups.values()];
}

type Translate = (item: Check) => WorkItem;

const work = ({ rule, subject }: Check, operation: WorkItem['operation']): WorkItem => ({
  rule,
  subject,
  operation,
});

const claim: Translate = item =>
  item.operation.type === 'consume'
    ? work(item, { type: 'claim', holdMs: CLAIM_MS, cost: item.operation.cost })
    : item;

const judge: Translate = item =>
  item.operation.type === 'consume' || item.operation.type === 'reserve'
    ? work(item, { type: 'judge', cost: item.operation.cost })
    : item;

async function call(
  caller: Caller,
  group: Group,
  translate: Translate,
  expires: number,
  at?: number,
): Promise<Claimed> {
  const outcome = await one(caller, group.items.map(translate), expires, at);
  const allowed = group.items.every(
    ({ rule, operation }, i) => rule.shadow || !decides(operation) || outcome.readings[i]?.allowed === true,
  );
  return { ...group, outcome, allowed };
}

async function one(caller: Caller, items: Work, expires: number, at?: number): Promise<Outcome> {
  const [outcome] = await caller.decide([items], expires, at);
  if (outcome === undefined || outcome instanceof Error) throw outcome ?? new Error('no outcome');
  return outcome;
}

/** Ends the claims. Reservations that are granted stay on hold as they are. */
async function conclude(
  caller: Caller,
  groups: readonly Claimed[],
  type: 'commit' | 'release',
  expires: number,
  at: number,
): Promise<Claimed[]> {
  return Promise.all(
    groups.map(async group => {
      const ending: { item: WorkItem; i: number }[] = [];
      group.items.forEach((item, i) => {
        const { operation, rule } = item;
        const isReserve = operation.type === 'reserve';
        const charges = operation.type === 'consume' || (isReserve && type === 'release');
        if (
          !charges ||
          !group.allowed ||
          group.outcome.readings[i]?.allowed !== true ||
          operation.cost === 0
        ) {
          return;
        }
        const holdMs = isReserve ? rule.holdMs : CLAIM_MS;
        ending.push({ item: work(item, { type, at, holdMs, cost: operation.cost }), i });
      });
      if (ending.length === 0) return group;
      try {
        const { readings } = await one(
          caller,
          ending.map(({ item }) => item),
          expires,
          at,
        );
        return {
          ...group,
          outcome: { ...group.outcome, readings: replace(group.outcome.readings, ending, readings) },
        };
      } catch (error) {
        // What could not be let go lapses by itself, and the refusal stands.
        if (type === 'release') return group;
        throw error;
      }
    }),
  );
}

function replace(
  readings: readonly Reading[],
  ending: readonly { readonly i: number }[],
  fresh: readonly Reading[],
): Reading[] {
  const replaced = [...readings];
  ending.forEach(({ i }, n) => {
    const reading = fresh[n];
    if (reading !== undefined) replaced[i] = reading;
  });
  return replaced;
}

function merge(count: number, at: number, groups: readonly Claimed[]): Outcome {
  const readings = new Array<Reading>(count);
  const blocks: BlockNews[] = [];
  const blockStarted: number[] = [];
  for (const { outcome, places } of groups) {
    places.forEach((place, i) => {
      const reading = outcome.readings[i];
      if (reading !== undefined) readings[place] = reading;
    });
    for (const block of outcome.blocks) blocks.push({ ...block, item: places[block.item] ?? 0 });
    for (const i of outcome.blockStarted) blockStarted.push(places[i] ?? 0);
  }
  return { at, readings, blocks, blockStarted: blockStarted.sort((a, b) => a - b) };
}
