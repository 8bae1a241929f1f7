import type { BlockEntry, BlockList } from './api.js';
import { reset, unblock, whomOf } from './actions.js';
import { shortHash } from './desk.js';
import type { Desk } from './desk.js';
import { button, byId, h, KeyedList, setText, show } from './dom.js';
import { timeElement, until } from './time.js';

const PAGE = 100;
const MOST_SHOWN = 1000;

/** The table of who is blocked now. */
export class Blocks {
  readonly #desk: Desk;
  readonly #rows: KeyedList<BlockEntry>;
  #wanted = PAGE;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#rows = new KeyedList(
      byId('blocks-rows'),
      ({ subjectHash, scope }) => `${scope} ${subjectHash}`,
      entry => this.#makeRow(entry),
    );
    byId('blocks-more').addEventListener('click', () => {
      this.#wanted += PAGE;
      desk.changed();
    });
  }

  /** Asks for as many pages as are shown. */
  async load(): Promise<BlockList> {
    let list = await this.#desk.api.get<BlockList>(`blocks?count=${String(PAGE)}`);
    while (list.cursor !== undefined && list.blocks.length < this.#wanted) {
      const query = `count=${String(PAGE)}&cursor=${encodeURIComponent(list.cursor)}`;
      const next = await this.#desk.api.get<BlockList>(`blocks?${query}`);
      list = {
        ...next,
        blocks: [...list.blocks, ...next.blocks],
        unlisted: [...list.unlisted, ...next.unlisted],
      };
    }
    return list;
  }

  /** For another visitor, who may do other things with them. */
  clear(): void {
    this.#wanted = PAGE;
    this.#rows.show([]);
  }

  show({ blocks, cursor, unlisted }: BlockList): void {
    const more = cursor !== undefined;
    setText(byId('blocks-count'), `${String(blocks.length)}${more ? '+' : ''}`);
    const missing = [...new Set(unlisted)];
    const notes = [
      blocks.length === 0 ? 'Nobody is blocked in these scopes.' : '',
      missing.length === 0
        ? ''
        : `The store of ${missing.join(', ')} keeps no list of blocks: look subjects up there by their whole key.`,
    ];
    setText(byId('blocks-note'), notes.filter(note => note !== '').join(' '));
    const lostFocus = this.#rows.show(blocks);
    show(byId('blocks-table'), blocks.length > 0);
    show(byId('blocks-more'), more && this.#wanted < MOST_SHOWN);
    // Its row is gone: go on from the heading rather than from the top of the page.
    if (lostFocus) byId('blocks-title').focus();
  }

  #makeRow(entry: BlockEntry): { element: HTMLElement; update: (item: BlockEntry) => void } {
    const { subjectHash, scope } = entry;
    const whom = whomOf(entry);
    const hash = button(shortHash(subjectHash), 'link hash', () => {
      this.#desk.lookUp(subjectHash);
    });
    hash.title = `Look up ${subjectHash}`;
    hash.setAttribute('aria-label', `Look up subject ${shortHash(subjectHash)}`);
    const how = h('span', { class: 'tag' });
    const since = h('td', { 'data-name': 'Since' });
    const end = h('td', { 'data-name': 'Until' });
    const actions = h('td', { class: 'actions' });
    if (this.#desk.mayWrite) {
      const free = button('Unblock', 'primary small', () => void unblock(this.#desk, whom));
      const forget = button('Reset', 'quiet small', () => void reset(this.#desk, whom));
      free.setAttribute('aria-label', `Unblock ${shortHash(subjectHash)} in ${scope}`);
      forget.setAttribute('aria-label', `Reset ${shortHash(subjectHash)} in ${scope}`);
      actions.append(free, forget);
    }
    const left = h('span', { class: 'aside' });
    let shown = '';
    return {
      element: h(
        'tr',
        {},
        h('th', { scope: 'row' }, hash),
        h('td', { 'data-name': 'Scope' }, h('span', {}, scope, ' ', how)),
        since,
        end,
        actions,
      ),
      update: item => {
        const state = `${String(item.since)} ${String(item.until)} ${String(item.manual)}`;
        if (state !== shown) {
          shown = state;
          setText(how, item.manual ? 'by hand' : 'by the rule');
          since.replaceChildren(timeElement(item.since));
          end.replaceChildren(
            item.until === null ? 'for ever' : h('span', {}, timeElement(item.until), left),
          );
        }
        if (item.until !== null) setText(left, until(item.until));
      },
    };
  }
}
