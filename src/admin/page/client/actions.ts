import type { BlockEntry, Scope, SubjectInput } from './api.js';
import { act, shortHash } from './desk.js';
import type { Desk } from './desk.js';
import { confirm } from './dialog.js';
import { h } from './dom.js';

/** Whom an action is for, in words and for the routes. */
export interface Whom {
  readonly subject: SubjectInput;
  readonly name: string;
  readonly scope?: string;
}

export function whomOf({
  subjectHash,
  scope,
}: {
  readonly subjectHash: string;
  readonly scope?: string;
}): Whom {
  return {
    subject: { hash: subjectHash },
    name: `subject ${shortHash(subjectHash)}`,
    ...(scope === undefined ? {} : { scope }),
  };
}

const place = (scope: string | undefined): string => scope ?? 'every scope';
const bodyOf = ({ subject, scope }: Whom): object => (scope === undefined ? { subject } : { subject, scope });
const count = (list: readonly unknown[], one: string): string =>
  `${String(list.length)} ${one}${list.length === 1 ? '' : 's'}`;

/** Ends blocks, after a confirmation. */
export async function unblock(desk: Desk, whom: Whom): Promise<void> {
  const sure = await confirm({
    title: 'Unblock?',
    text: `Ends the block of ${whom.name} in ${place(whom.scope)}. What was counted stays: a rule that is used up goes on refusing until its window has moved on. Reset to forget that too.`,
    yes: 'Unblock',
  });
  if (!sure) return;
  await act(desk, async () => {
    const { unblocked } = await desk.api.post<{ unblocked: BlockEntry[] }>('unblock', bodyOf(whom));
    return unblocked.length === 0 ? 'No block was left to end.' : `${count(unblocked, 'block')} ended.`;
  });
}

/** Forgets counters and blocks, after a confirmation. */
export async function reset(desk: Desk, whom: Whom): Promise<void> {
  const sure = await confirm({
    title: 'Reset?',
    text: `Forgets all that was counted of ${whom.name} in ${place(whom.scope)}, with its block. The next request is the first one.`,
    yes: 'Reset',
  });
  if (!sure) return;
  await act(desk, async () => {
    const { removed } = await desk.api.post<{ removed: unknown[] }>('reset', bodyOf(whom));
    return removed.length === 0 ? 'There was nothing to forget.' : `${count(removed, 'counter')} forgotten.`;
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
export async function block(
  desk: Desk,
  whom: Whom & { readonly scope: string },
  mode: Scope['mode'],
): Promise<void> {
  const select = h(
    'select',
    { id: 'block-duration' },
    ...DURATIONS.map(([label, sec]) => h('option', { value: String(sec) }, label)),
  );
  const sure = await confirm({
    title: 'Block?',
    text:
      mode === 'shadow'
        ? `${whom.scope} is in shadow mode: the block of ${whom.name} is kept and reported, but refuses nobody until the rule is enforced.`
        : `Refuses every request of ${whom.name} in ${whom.scope}, in all processes, until the time is over or somebody unblocks.`,
    yes: 'Block',
    fields: [h('label', { for: 'block-duration' }, 'How long'), select],
  });
  if (!sure) return;
  await act(desk, async () => {
    const duration = select.value === 'forever' ? { forever: true } : { blockSec: Number(select.value) };
    await desk.api.post('block', { ...bodyOf(whom), ...duration });
    return 'Blocked.';
  });
}
