import type { BlockEntry, Scope, Standing, SubjectInput } from './api.js';
import { act } from './desk.js';
import type { Desk } from './desk.js';
import { confirm } from './dialog.js';
import { h } from './dom.js';
import { shortHash } from './names.js';

/** Whom an action is for: for the routes, and for the question that is asked before. */
export interface Whom {
  readonly subject: SubjectInput;
  readonly scope?: string;
  /** As the operator typed them, or the digits of their hash. */
  readonly name: string;
  readonly subjects: number;
  /** Standing blocks that the action is about. */
  readonly blocks: number;
  /** Without the block a counter refuses them all the same. */
  readonly usedUp: boolean;
  /** There are others, whom one request does not reach. */
  readonly more?: boolean;
}

/** What both a row of the list and a standing of a look-up say of somebody in a scope. */
type Situation = Pick<Standing, 'subjectHash' | 'scope' | 'mode' | 'withoutBlock'> &
  Partial<Pick<Standing, 'block' | 'reading'>>;

/** Would they be refused, the block aside? */
export function isUsedUp({ block, withoutBlock, reading }: Situation): boolean {
  if (block === null) return reading?.allowed === false;
  return withoutBlock?.allowed === false;
}

/**
 * What lets them in: a reset where the counter is used up, whether a block stands or not, else the end of the block. Nothing
 * where nobody is refused: no block stands, or the rule refuses nobody.
 */
export function cure(situation: Situation): 'reset' | 'unblock' | undefined {
  if (situation.mode !== 'enforce') return undefined;
  if (isUsedUp(situation)) return 'reset';
  return situation.block === null ? undefined : 'unblock';
}

/** One subject: in one scope, or in all that it was found in. */
export function whomOf(desk: Desk, situations: readonly Situation[], scope?: string): Whom {
  const hash = situations[0]?.subjectHash ?? '';
  const typed = desk.names.typed(hash);
  const digits = `subject ${shortHash(hash)}`;
  return {
    subject: { hash },
    ...(scope === undefined ? {} : { scope }),
    name: typed === undefined ? digits : `${typed} (${digits})`,
    subjects: 1,
    blocks: situations.filter(({ block }) => block !== null).length,
    usedUp: situations.some(one => one.mode === 'enforce' && isUsedUp(one)),
  };
}

const place = ({ scope }: Whom): string => scope ?? 'every scope';
const bodyOf = ({ subject, scope }: Whom): object => (scope === undefined ? { subject } : { subject, scope });

export function counted(n: number, one: string): string {
  return `${n.toLocaleString()} ${one}${n === 1 ? '' : 's'}`;
}

/** Whom, and where they are several, how many. */
const people = ({ name, subjects, more }: Whom): string => {
  if (subjects === 1 && more !== true) return name;
  return `${more === true ? 'the first ' : ''}${counted(subjects, 'subject')} with ${name}`;
};

/** Ends blocks, after a confirmation. */
export async function unblock(desk: Desk, whom: Whom): Promise<void> {
  const sure = await confirm({
    title: `Unblock ${whom.subjects === 1 ? 'one subject' : counted(whom.subjects, 'subject')}?`,
    text: `Ends ${counted(whom.blocks, 'block')} of ${people(whom)} in ${place(whom)}. ${
      whom.usedUp
        ? 'The counter is used up as well: their next request is refused again, and may start another block. Reset lets them in.'
        : 'What was counted stays.'
    }`,
    yes: 'Unblock',
  });
  if (!sure) return;
  await act(desk, async () => {
    const { unblocked } = await desk.api.post<{ unblocked: unknown[] }>('unblock', bodyOf(whom));
    return unblocked.length === 0
      ? 'No block was left to end.'
      : `${counted(unblocked.length, 'block')} ended.`;
  });
}

/** Forgets counters and blocks, after a confirmation. */
export async function reset(desk: Desk, whom: Whom): Promise<void> {
  const blocks = whom.blocks === 0 ? '' : `, and ${counted(whom.blocks, 'block')}`;
  const others = whom.scope === undefined ? '' : ' What other scopes have counted stays.';
  const sure = await confirm({
    title: `Reset ${whom.subjects === 1 ? 'one subject' : counted(whom.subjects, 'subject')}?`,
    text: `Forgets all that was counted of ${people(whom)} in ${place(whom)}${blocks}.${others}`,
    yes: 'Reset',
  });
  if (!sure) return;
  await act(desk, async () => {
    const { removed } = await desk.api.post<{ removed: unknown[] }>('reset', bodyOf(whom));
    return removed.length === 0
      ? 'There was nothing to forget.'
      : `${counted(removed.length, 'counter')} forgotten.`;
  });
}

const DURATIONS: readonly (readonly [label: string, sec: number | 'forever'])[] = [
  ['15 minutes', 900],
  ['1 hour', 3600],
  ['1 day', 86_400],
  ['7 days', 604_800],
  ['for ever', 'forever'],
];

/** Blocks in one scope, after a confirmation that asks for how long. */
export async function block(desk: Desk, whom: Whom, mode: Scope['mode']): Promise<void> {
  const select = h(
    'select',
    { id: 'block-duration' },
    ...DURATIONS.map(([label, sec]) => h('option', { value: String(sec) }, label)),
  );
  const sure = await confirm({
    title: 'Block one subject?',
    text:
      mode === 'shadow'
        ? `${place(whom)} is in shadow mode: the block of ${whom.name} is kept and reported, but refuses nobody until the rule is enforced.`
        : `Refuses every request of ${whom.name} in ${place(whom)}, in all processes, until the time is over or somebody unblocks.`,
    yes: 'Block',
    fields: [h('label', { for: 'block-duration' }, 'How long'), select],
  });
  if (!sure) return;
  await act(desk, async () => {
    const duration = select.value === 'forever' ? { forever: true } : { blockSec: Number(select.value) };
    await desk.api.post<{ blocked: BlockEntry[] }>('block', { ...bodyOf(whom), ...duration });
    return 'Blocked.';
  });
}
