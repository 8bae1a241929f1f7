import type { Overview, Scope } from './api.js';
import { sum } from './chart.js';
import type { Desk } from './desk.js';
import { button, byId, h, KeyedList, setText } from './dom.js';
import type { Row } from './dom.js';

const MOST_SHOWN = 8;

interface Refusing {
  readonly scope: string;
  readonly isShadow: boolean;
  /** Requests in the last five minutes. */
  readonly refused: number;
  /** Of the most that a scope has refused, 0 to 1. */
  readonly share: number;
}

/** Which scopes refuse: the most first, and behind them what those in shadow mode would refuse. */
export class Refusals {
  readonly #rows: KeyedList<Refusing>;

  constructor(desk: Desk) {
    this.#rows = new KeyedList(
      byId('refusals-rows'),
      ({ scope, isShadow }) => `${String(isShadow)} ${scope}`,
      refusing => makeRow(desk, refusing),
    );
  }

  show({ scopes }: Overview): void {
    const all = scopes.map(refusedBy).filter(({ refused }) => refused > 0);
    all.sort((a, b) => Number(a.isShadow) - Number(b.isShadow) || b.refused - a.refused);
    const most = Math.max(1, ...all.map(({ refused }) => refused));
    this.#rows.show(all.slice(0, MOST_SHOWN).map(one => ({ ...one, share: one.refused / most })));
    const hidden = all.length - MOST_SHOWN;
    setText(
      byId('refusals-note'),
      all.length === 0
        ? 'Nothing was refused in the last five minutes.'
        : hidden > 0
          ? `And ${String(hidden)} more; see the rules below.`
          : '',
    );
  }
}

function refusedBy({ scope, mode, recent }: Scope): Omit<Refusing, 'share'> {
  const isShadow = mode !== 'enforce';
  return { scope, isShadow, refused: sum((isShadow ? recent.shadowRefused : recent.refused) ?? []) };
}

function makeRow(desk: Desk, { scope, isShadow }: Refusing): Row<Refusing> {
  const name = button(scope, 'link scope', () => {
    desk.showScope(scope);
  });
  name.title = `${scope}: show it in the chart and in the list of blocks`;
  const count = h('b', { class: 'number' });
  const bar = h('span', { class: isShadow ? 'bar-of would' : 'bar-of refused', 'aria-hidden': 'true' });
  return {
    element: h(
      'li',
      {},
      h(
        'span',
        { class: 'what' },
        name,
        ' ',
        isShadow ? h('span', { class: 'tag would' }, 'would be') : undefined,
      ),
      count,
      bar,
    ),
    update: ({ refused, share }) => {
      setText(count, refused.toLocaleString());
      const width = `${(share * 100).toFixed(1)}%`;
      if (bar.style.width !== width) bar.style.width = width;
    },
  };
}
