import { cure, isUsedUp, reset, unblock, whomOf } from './actions.js';
import type { BlockEntry, BlockList } from './api.js';
import { hashButton } from './desk.js';
import type { Desk } from './desk.js';
import { button, byId, freeze, h, KeyedList, setText, show } from './dom.js';
import type { Row } from './dom.js';
import { shortHash } from './names.js';
import { offer } from './scope-choice.js';
import { timeElement, until } from './time.js';

const PAGE = 50;

/** An answer, and the question: what has been turned to since is another one. */
export interface Loaded {
  readonly path: string;
  readonly list: BlockList;
}

/** The table of who is blocked now, newest first, page by page. */
export class Blocks {
  readonly #desk: Desk;
  readonly #rows: KeyedList<BlockEntry>;
  readonly #scope = byId('blocks-scope', HTMLSelectElement);
  readonly #newer = byId('blocks-newer', HTMLButtonElement);
  readonly #older = byId('blocks-older', HTMLButtonElement);
  /** The cursors of this page and of those before it; none on the first. */
  readonly #cursors: string[] = [];
  #next: string | undefined;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#rows = new KeyedList(
      byId('blocks-rows'),
      ({ subjectHash, scope, mode }) => `${mode} ${scope} ${subjectHash}`,
      entry => blockRow(desk, entry),
    );
    this.#scope.addEventListener('change', () => {
      this.#turn([]);
    });
    this.#newer.addEventListener('click', () => {
      this.#turn(this.#cursors.slice(0, -1));
      byId('blocks-title').scrollIntoView({ block: 'nearest' });
    });
    this.#older.addEventListener('click', () => {
      if (this.#next !== undefined) this.#turn([...this.#cursors, this.#next]);
      byId('blocks-title').scrollIntoView({ block: 'nearest' });
    });
  }

  /** Asks for the page that is open. */
  async load(): Promise<Loaded> {
    const path = this.#path();
    return { path, list: await this.#desk.api.get<BlockList>(path) };
  }

  /** The scopes there are to choose from. */
  offerScopes(scopes: readonly string[]): void {
    offer(this.#scope, scopes, 'all scopes');
  }

  only(scope: string): void {
    this.#scope.value = scope;
    this.#turn([]);
  }

  /** For another visitor, who may do other things with them. */
  clear(): void {
    this.#cursors.length = 0;
    this.#next = undefined;
    this.#scope.value = '';
    this.#rows.show([]);
  }

  /** What stands there is old, and nothing to act on. */
  stale(isStale: boolean): void {
    freeze(byId('blocks-table'), isStale, byId('blocks-title'));
  }

  show({ path, list }: Loaded): void {
    if (path !== this.#path()) return;
    const { blocks, total, before, cursor } = list;
    if (blocks.length === 0 && this.#cursors.length > 0) {
      // All of this page have been freed.
      this.#turn(this.#cursors.slice(0, -1));
      return;
    }
    this.#next = cursor;
    setText(byId('blocks-count'), headline(list));
    setText(byId('blocks-note'), notes(list, this.#scope.value).join(' '));
    let lostFocus = this.#rows.show(blocks);
    show(byId('blocks-table'), blocks.length > 0);
    const focused = [this.#newer, this.#older].find(one => one === document.activeElement);
    this.#newer.disabled = this.#cursors.length === 0;
    this.#older.disabled = cursor === undefined;
    lostFocus ||= focused?.disabled === true;
    show(byId('blocks-pages'), before > 0 || cursor !== undefined);
    setText(
      byId('blocks-range'),
      `${(before + 1).toLocaleString()}–${(before + blocks.length).toLocaleString()} of ${total.toLocaleString()}`,
    );
    // What had it is gone: go on from the heading rather than from the top of the page.
    if (lostFocus) byId('blocks-title').focus();
  }

  #path(): string {
    const query = new URLSearchParams({ count: String(PAGE) });
    if (this.#scope.value !== '') query.set('scope', this.#scope.value);
    const cursor = this.#cursors.at(-1);
    if (cursor !== undefined) query.set('cursor', cursor);
    return `blocks?${query.toString()}`;
  }

  #turn(cursors: readonly string[]): void {
    this.#cursors.splice(0, Infinity, ...cursors);
    this.#desk.changed();
  }
}

/** `1,204, and 3 in shadow mode`: those of rules that refuse nobody are told apart. */
function headline({ counts, complete }: BlockList): string {
  const sum = (isReal: boolean): number =>
    counts
      .filter(({ mode }) => (mode === 'enforce') === isReal)
      .reduce((total, { blocked }) => total + blocked, 0);
  const shadow = sum(false);
  const plus = complete ? '' : '+';
  return `${sum(true).toLocaleString()}${plus}${shadow === 0 ? '' : `, and ${shadow.toLocaleString()}${plus} in shadow mode`}`;
}

function notes({ blocks, unlisted, complete }: BlockList, scope: string): string[] {
  return [
    ...(blocks.length === 0 ? [`Nobody is blocked in ${scope === '' ? 'these scopes' : scope}.`] : []),
    ...(complete
      ? []
      : ['There are more blocks than one list reads: the numbers are of those that were read.']),
    ...(unlisted.length === 0
      ? []
      : [
          `The store of ${unlisted.join(', ')} keeps no list of blocks: look subjects up there by their whole key.`,
        ]),
  ];
}

function blockRow(desk: Desk, first: BlockEntry): Row<BlockEntry> {
  let entry = first;
  const { subjectHash, scope, mode } = first;
  const isReal = mode === 'enforce';
  const whom = (): Parameters<typeof unblock>[1] => whomOf(desk, [entry], scope);
  const typed = h('span', { class: 'typed' });
  const how = h('span', { class: 'tag' });
  const spent = h('span', { class: 'tag', hidden: '' }, 'counter used up');
  const since = h('td', { 'data-name': 'Since' });
  const end = h('td', { 'data-name': 'Until' });
  const left = h('span', { class: 'aside' });
  const actions = h('td', { class: 'actions' });
  const free = button('Unblock', 'quiet small', () => void unblock(desk, whom()));
  const forget = button('Reset', 'quiet small', () => void reset(desk, whom()));
  if (desk.mayWrite) {
    free.setAttribute('aria-label', `Unblock ${shortHash(subjectHash)} in ${scope}`);
    forget.setAttribute('aria-label', `Reset ${shortHash(subjectHash)} in ${scope}`);
    actions.append(free, forget);
  }
  let shown = '';
  return {
    element: h(
      'tr',
      { class: isReal ? 'real' : 'shadow' },
      h('th', { scope: 'row' }, hashButton(desk, subjectHash), typed),
      h(
        'td',
        { 'data-name': 'Scope' },
        h('span', { class: 'scope', title: scope }, scope),
        ' ',
        isReal ? undefined : h('span', { class: 'tag would' }, `${mode}: refuses nobody`),
        isReal ? undefined : ' ',
        how,
        ' ',
        spent,
      ),
      since,
      end,
      actions,
    ),
    update: item => {
      entry = item;
      const cured = cure(item);
      const usedUp = isReal && isUsedUp(item);
      const state = `${String(item.since)} ${String(item.until)} ${String(item.manual)} ${String(cured)}`;
      if (state !== shown) {
        shown = state;
        setText(how, item.manual ? 'by hand' : 'by the rule');
        since.replaceChildren(timeElement(item.since));
        end.replaceChildren(item.until === null ? 'for ever' : h('span', {}, timeElement(item.until)), left);
        free.className = cured === 'unblock' ? 'main small' : 'quiet small';
        forget.className = cured === 'reset' ? 'main small' : 'quiet small';
        forget.title = usedUp
          ? 'The counter is used up as well: unblocking alone would not let them in.'
          : '';
      }
      setText(typed, desk.names.typed(subjectHash) ?? '');
      show(spent, usedUp);
      setText(left, item.until === null ? '' : until(item.until));
    },
  };
}
