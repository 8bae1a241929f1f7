import { block, cure, isUsedUp, reset, unblock, whomOf } from './actions.js';
import type { Standing } from './api.js';
import type { Desk } from './desk.js';
import { button, h, KeyedList, setText, show } from './dom.js';
import type { Row } from './dom.js';
import { shortHash } from './names.js';
import { meter, words } from './standing.js';

/** One subject with its standings. `at`: when they were so, by the server's clock. */
export interface Person {
  readonly hash: string;
  readonly standings: readonly Standing[];
  readonly at: number;
}

export function personRow(desk: Desk, first: Person): Row<Person> {
  let person = first;
  const whom = (): ReturnType<typeof whomOf> => whomOf(desk, person.standings);
  const typed = h('span', { class: 'typed' });
  const free = button('Unblock everywhere', 'quiet small', () => void unblock(desk, whom()));
  const forget = button('Reset everywhere', 'quiet small', () => void reset(desk, whom()));
  const everywhere = h('div', { class: 'row' }, free, forget);
  const list = h('div', { class: 'standings' });
  const rows = new KeyedList<Standing>(
    list,
    ({ scope }) => scope,
    one => standingRow(desk, one, () => person.at),
  );
  return {
    element: h(
      'div',
      { class: 'person' },
      h('h3', {}, 'Subject ', h('span', { class: 'hash', title: first.hash }, shortHash(first.hash)), typed),
      desk.mayWrite ? everywhere : undefined,
      list,
    ),
    update: now => {
      person = now;
      const { standings } = now;
      setText(typed, desk.names.typed(now.hash) ?? '');
      show(everywhere, standings.length > 1);
      const cures = new Set(standings.map(cure));
      // Nothing to end: nothing that stands out, and nothing to press.
      show(
        free,
        standings.some(({ block: stands }) => stands !== null),
      );
      free.className = cures.has('unblock') && !cures.has('reset') ? 'primary small' : 'quiet small';
      forget.className = cures.has('reset') ? 'primary small' : 'quiet small';
      rows.show(standings);
    },
  };
}

function standingRow(desk: Desk, first: Standing, at: () => number): Row<Standing> {
  const { scope, subjectHash } = first;
  let standing = first;
  const whom = (): ReturnType<typeof whomOf> => whomOf(desk, [standing], scope);
  const tag = h('span', { class: 'tag would' });
  const text = h('p');
  const used = h('div', { class: 'used' });
  const free = button('Unblock', 'quiet small', () => void unblock(desk, whom()));
  const forget = button('Reset', 'quiet small', () => void reset(desk, whom()));
  const bar = button('Block…', 'quiet small', () => void block(desk, whom(), standing.mode));
  for (const one of [free, forget, bar]) {
    one.setAttribute('aria-label', `${one.textContent} ${shortHash(subjectHash)} in ${scope}`);
  }
  const actions = h('div', { class: 'row' }, free, forget, bar);
  const element = h(
    'div',
    { class: 'standing' },
    h('h4', {}, scope, ' ', tag),
    text,
    used,
    desk.mayWrite ? actions : undefined,
  );
  return {
    element,
    update: now => {
      standing = now;
      const { block: stands, reading, mode, counters } = now;
      const isReal = mode === 'enforce';
      element.className = `standing${stands === null ? '' : isReal ? ' blocked' : ' shadow'}`;
      show(tag, !isReal);
      setText(tag, mode);
      text.replaceChildren(...words(now, at()));
      // A block hides the counter: nothing is left then, whatever was used.
      used.replaceChildren(
        ...(reading !== null && reading.limit > 0 && stands === null
          ? [meter(reading.limit - reading.remaining, reading.limit, scope)]
          : []),
      );
      show(free, stands !== null);
      show(forget, stands !== null || counters.length > 0);
      show(bar, mode !== 'off');
      const cured = cure(now);
      free.className = cured === 'unblock' ? 'primary small' : 'quiet small';
      forget.className = cured === 'reset' ? 'primary small' : 'quiet small';
      forget.title =
        stands !== null && isUsedUp(now)
          ? 'The counter is used up as well: unblocking alone would not let them in.'
          : '';
    },
  };
}
