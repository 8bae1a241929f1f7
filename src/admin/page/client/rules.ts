import type { Overview, Scope } from './api.js';
import { Sparkline } from './chart.js';
import type { Desk } from './desk.js';
import { byId, button, h, KeyedList, setText, show } from './dom.js';
import { duration, timeElement } from './time.js';

/** The rules with their counts. */
export class Rules {
  readonly #desk: Desk;
  readonly #rows: KeyedList<Scope>;
  #stepSec = 1;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#rows = new KeyedList(
      byId('rules-rows'),
      ({ scope }) => scope,
      scope => this.#makeRow(scope),
    );
  }

  show({ instance, since, stepSec, scopes }: Overview, others: number): void {
    this.#stepSec = stepSec;
    byId('rules-note').replaceChildren(
      `Counts of process ${instance} since `,
      timeElement(since),
      others === 0
        ? '.'
        : `; ${String(others)} more answered here in the last half minute and count for themselves.`,
    );
    this.#rows.show(scopes);
  }

  #makeRow({ scope }: Scope): { element: HTMLElement; update: (item: Scope) => void } {
    const name = button(scope, 'link', () => {
      this.#desk.showScope(scope);
    });
    name.title = 'Show it in the chart and in the list of blocks';
    const spark = h('td', { class: 'spark', 'data-name': 'Last five minutes' });
    const line = new Sparkline(spark);
    const cell = (label: string): HTMLElement => h('td', { class: 'number', 'data-name': label });
    const allowed = cell('Allowed');
    const refused = cell('Refused');
    const blocked = cell('Blocks');
    const errors = cell('Store errors');
    const rule = h('td', { 'data-name': 'Rule' });
    const tag = h('span', { class: 'tag' });
    return {
      element: h(
        'tr',
        {},
        h('th', { scope: 'row' }, name, ' ', tag),
        rule,
        allowed,
        refused,
        blocked,
        errors,
        spark,
      ),
      update: item => {
        const { totals, mode } = item;
        // A deploy may change it while the page is open.
        show(tag, mode !== 'enforce');
        setText(tag, mode);
        setText(rule, describe(item));
        setText(allowed, totals.allowed.toLocaleString());
        setText(
          refused,
          mode === 'shadow'
            ? `${totals.shadowRefused.toLocaleString()} would be`
            : totals.refused.toLocaleString(),
        );
        setText(blocked, totals.blocked.toLocaleString());
        setText(errors, totals.storeErrors.toLocaleString());
        line.draw(item.recent, this.#stepSec);
      },
    };
  }
}

/** `120 in 1 min, sliding window, blocks for 2 min`. */
function describe({ limit, windowSec, capacity, algorithm, blockSec }: Scope): string {
  const kind = algorithm.replace('-', ' ');
  if (limit === null || windowSec === null) return `by plan, ${kind}`;
  const burst = capacity === null || capacity === limit ? '' : `, burst ${String(capacity)}`;
  const ladder = (blockSec ?? []).map(duration).join(', then ');
  return `${limit.toLocaleString()} in ${duration(windowSec)}${burst}, ${kind}${ladder === '' ? '' : `, blocks for ${ladder}`}`;
}
