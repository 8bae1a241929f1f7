import { Check } from '../core/check.js';
import type { Decision, RuleReading } from '../core/decision.js';
import { LOOK } from '../core/operation.js';
import type { Operation } from '../core/operation.js';
import type { Store, StoredCell } from '../core/store.js';
import { subjectOfHash } from '../core/subject.js';
import { ask, storeFailed } from '../http/deadline.js';
import { refuse } from '../http/reply.js';
import type { ListedBlock } from './block-book.js';
import { showCell, withoutBlock } from './cells.js';
import type { ShownBlock, ShownCell, WithoutBlock } from './cells.js';
import { actingRule } from './scopes.js';
import type { ManagedScope } from './scopes.js';
import type { Target } from './targets.js';

/** How one subject stands in one scope. */
export interface Standing extends ShownCell {
  readonly subjectHash: string;
  readonly scope: string;
  readonly mode: 'enforce' | 'shadow' | 'off';
  /** The verdict for a request of the rule's own cost, made now; `null` where the numbers come with each request, or the rule is off. */
  readonly reading: Omit<RuleReading, 'scope' | 'shadow'> | null;
  /** Would lifting the block let them in? */
  readonly withoutBlock: WithoutBlock | null;
}

/** A standing block, as a list shows it. */
export interface StandingBlock extends ShownBlock {
  readonly subjectHash: string;
  readonly scope: string;
  /** In a scope in shadow mode (or off) it refuses nobody. */
  readonly mode: Standing['mode'];
  readonly withoutBlock: WithoutBlock | null;
}

/** A block that an operator ended. */
export interface EndedBlock extends ShownBlock {
  readonly subjectHash: string;
  readonly scope: string;
}

/** A cell that an operator removed. */
export interface RemovedCell extends ShownCell {
  readonly subjectHash: string;
  readonly scope: string;
}

/** Calls to a store that are under way at once for one request of an operator. */
const AT_ONCE = 50;

/** Readings of the targets. Writes nothing. */
export async function statusOf(targets: readonly Target[]): Promise<Standing[]> {
  const cells = new CellLookup();
  return inChunks(targets, async ({ managed, subject }) => {
    const { entry } = managed;
    const [stored, verdict] = await Promise.all([
      cells.find({ managed, subject }),
      managed.limiters[0].engine.decide(
        [checkOf({ managed, subject }, { type: 'peek', cost: entry.cost })],
        true,
      ),
    ]);
    const { decision } = verdict;
    checkDecided(decision);
    return {
      subjectHash: subject.hash,
      scope: managed.scope,
      mode: entry.template.mode,
      reading: readingOf(managed, decision),
      ...showCell(stored?.cell, entry.own, decision.at),
      withoutBlock: withoutBlock(stored?.cell, entry, decision.at),
    };
  });
}

/** The blocks of a list as they stand now: one that has ended since the list was read is left out. Writes nothing. */
export async function standingBlocks(listed: readonly ListedBlock[]): Promise<StandingBlock[]> {
  const cells = new CellLookup();
  const targets = listed.map(({ entry, managed }) => ({
    managed,
    subject: subjectOfHash(entry.subjectHash),
  }));
  const times = new Map<Store, Promise<number>>();
  const blocks = await inChunks(targets, async target => {
    const { entry, scope, limiters } = target.managed;
    const { store } = limiters[0].engine;
    const time = times.get(store) ?? storeTime([target]);
    times.set(store, time);
    const [stored, now] = await Promise.all([cells.find(target), time]);
    const { block: stands } = showCell(stored?.cell, undefined, now);
    if (stands === null) return [];
    const { hash: subjectHash } = target.subject;
    const { mode } = entry.template;
    return [{ subjectHash, scope, mode, ...stands, withoutBlock: withoutBlock(stored?.cell, entry, now) }];
  });
  return blocks.flat();
}

/** Forgets the targets: counters, holds, blocks and strikes. Answers what was there. */
export async function reset(targets: readonly Target[]): Promise<RemovedCell[]> {
  const now = await storeTime(targets);
  const removed = await inChunks(targets, async ({ managed, subject }) => {
    const cells = await Promise.all(
      managed.limiters.map(({ engine }) => ask(() => engine.forget(subject.hash, managed.scope))),
    );
    return cells.flat().map(({ scope, cell }) => ({
      subjectHash: subject.hash,
      scope,
      ...showCell(cell, managed.entry.own, now),
    }));
  });
  return removed.flat();
}

/** Blocks by hand, for `ms` or for ever (`null`). */
export async function block(targets: readonly Target[], ms: number | null): Promise<EndedBlock[]> {
  return inChunks(targets, async target => {
    const decision = await effect(target, { type: 'block', ms });
    const { at } = decision;
    return {
      subjectHash: target.subject.hash,
      scope: target.managed.scope,
      since: at,
      until: ms === null ? null : at + ms,
      manual: true,
    };
  });
}

/** Ends the blocks of the targets and forgets their strikes. Answers those that stood. */
export async function unblock(targets: readonly Target[]): Promise<EndedBlock[]> {
  const cells = new CellLookup();
  const ended = await inChunks(targets, async target => {
    const { managed, subject } = target;
    const stored = await cells.find(target);
    const { at } = await effect(target, { type: 'unblock' });
    const { block: stood } = showCell(stored?.cell, undefined, at);
    return stood === null ? [] : [{ subjectHash: subject.hash, scope: managed.scope, ...stood }];
  });
  return ended.flat();
}

/** @throws Refusal 409: such a block would refuse nobody, and whoever set it would believe otherwise. */
export function checkEnforced({ entry, scope }: ManagedScope): void {
  if (entry.template.mode !== 'off') return;
  refuse(409, 'The rule of this scope is off: a block would refuse nobody.', { scope });
}

/** The clocks of this process and of the store may disagree; what was removed is judged by the store's. */
async function storeTime([first]: readonly Target[]): Promise<number> {
  if (first === undefined) return Date.now();
  const { decision } = await first.managed.limiters[0].engine.decide([checkOf(first, LOOK)], true);
  checkDecided(decision);
  return decision.at;
}

async function effect(target: Target, operation: Operation): Promise<Decision> {
  const [first, ...others] = target.managed.limiters;
  const { decision } = await first.engine.effect([checkOf(target, operation)]);
  checkDecided(decision);
  // The same cells again, for the sake of what each limiter keeps for outages.
  for (const { engine } of others) checkDecided((await engine.effect([checkOf(target, operation)])).decision);
  return decision;
}

function checkOf({ managed, subject }: Target, operation: Operation): Check {
  return new Check(actingRule(managed.entry), subject, operation);
}

function readingOf({ entry }: ManagedScope, { readings }: Decision): Standing['reading'] {
  const [found] = readings;
  if (found === undefined || entry.own === undefined || entry.template.mode === 'off') return null;
  const { scope: _scope, shadow: _shadow, ...reading } = found;
  return reading;
}

/** The fail mode may have answered in the store's place: good enough for a request, not for an operator. */
function checkDecided({ degraded }: Decision): void {
  if (degraded === undefined) return;
  storeFailed(
    degraded === 'local'
      ? 'it is away, and this process decides by itself until it is back'
      : 'it did not answer in time, or is left alone for a second after several failures',
  );
}

/** What the store holds of subjects, asked for once each. */
class CellLookup {
  readonly #stores = new Map<Store, Map<string, Promise<readonly StoredCell[]>>>();

  async find({ managed, subject: { hash } }: Target): Promise<StoredCell | undefined> {
    const { store } = managed.limiters[0].engine;
    const cells = this.#stores.get(store) ?? new Map<string, Promise<readonly StoredCell[]>>();
    this.#stores.set(store, cells);
    const asked = cells.get(hash) ?? ask(() => store.inspect(hash));
    cells.set(hash, asked);
    return (await asked).find(({ scope }) => scope === managed.scope);
  }
}

async function inChunks<T, U>(items: readonly T[], work: (item: T) => Promise<U>): Promise<U[]> {
  const results: U[] = [];
  for (let i = 0; i < items.length; i += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(i, i + AT_ONCE).map(work))));
  }
  return results;
}
