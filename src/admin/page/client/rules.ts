import type { Overview, Recent, Scope } from './api.js';
import { Sparkline, TrafficChart } from './chart.js';
import { byId, button, h, KeyedList, setText, show } from './dom.js';
import { duration, timeElement } from './time.js';

const ALL = '';
/** A process that has not answered for so long may be gone: another one is shown in its place. */
const STICKY_MS = 10_000;

/** The rules with their counts, and the chart of one of them or of all. */
export class Rules {
  readonly #chart = new TrafficChart(byId('traffic-chart'));
  readonly #select = byId('traffic-scope', HTMLSelectElement);
  readonly #rows: KeyedList<Scope>;
  readonly #instances = new Map<string, number>();
  #shown: Overview | undefined;

  constructor() {
    this.#rows = new KeyedList(
      byId('rules-rows'),
      ({ scope }) => scope,
      scope => this.#makeRow(scope),
    );
    this.#select.addEventListener('change', () => {
      this.#draw();
    });
  }

  /** Behind a load balancer each answer may be another process's, and counts are each one's own: one of them is shown. */
  show(overview: Overview): void {
    const now = Date.now();
    const shownAt = this.#instances.get(this.#shown?.instance ?? '') ?? 0;
    this.#instances.set(overview.instance, now);
    if (this.#shown !== undefined && this.#shown.instance !== overview.instance && now - shownAt < STICKY_MS)
      return;
    this.#shown = overview;
    const names = [ALL, ...overview.scopes.map(({ scope }) => scope)];
    this.#offer(names);
    const others = this.#instances.size - 1;
    byId('rules-note').replaceChildren(
      `Counts of process ${overview.instance} since `,
      timeElement(overview.since),
      others === 0 ? '.' : `; ${String(others)} more answered here and count for themselves.`,
    );
    this.#rows.show(overview.scopes);
    this.#trouble(overview);
    this.#draw();
  }

  /** The scopes to choose from for the chart: others after a deploy, and then the choice stays where it can. */
  #offer(names: readonly string[]): void {
    const offered = [...this.#select.options].map(({ value }) => value);
    if (offered.length === names.length && names.every((name, i) => name === offered[i])) return;
    const chosen = this.#select.value;
    this.#select.replaceChildren(
      ...names.map(name => h('option', { value: name }, name === ALL ? 'all together' : name)),
    );
    this.#select.value = names.includes(chosen) ? chosen : ALL;
  }

  /** What becomes of requests while a store is away: each scope has its own fail mode. */
  #trouble({ scopes }: Overview): void {
    const what = {
      open: 'requests pass uncounted',
      closed: 'requests are refused',
      local: 'each process counts for itself',
    };
    const sentences = Object.entries(what).flatMap(([failMode, consequence]) => {
      const away = scopes.filter(({ degraded }) => degraded === failMode).map(({ scope }) => scope);
      return away.length === 0
        ? []
        : [`The store does not answer for ${away.join(', ')}: ${consequence} until it is back.`];
    });
    show(byId('trouble'), sentences.length > 0);
    setText(byId('trouble'), sentences.join(' '));
  }

  #draw(): void {
    if (this.#shown === undefined) return;
    const { scopes, stepSec } = this.#shown;
    const wanted = this.#select.value;
    const chosen = scopes.filter(({ scope }) => wanted === ALL || scope === wanted);
    const words = this.#chart.draw(sum(chosen.map(({ recent }) => recent)), stepSec);
    setText(byId('rate-allowed'), words.allowed);
    setText(byId('rate-refused'), words.refused);
  }

  #makeRow({ scope }: Scope): { element: HTMLElement; update: (item: Scope) => void } {
    const name = button(scope, 'link', () => {
      this.#select.value = scope;
      this.#draw();
      byId('traffic-title').scrollIntoView({ block: 'nearest' });
    });
    name.title = 'Show it in the chart';
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
        line.draw(item.recent, this.#shown?.stepSec ?? 1);
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

function sum(series: readonly Recent[]): Recent {
  const add = (pick: (recent: Recent) => readonly number[]): number[] => {
    const length = Math.max(0, ...series.map(recent => pick(recent).length));
    return Array.from({ length }, (_, i) =>
      series.reduce((total, recent) => total + (pick(recent)[i] ?? 0), 0),
    );
  };
  return { allowed: add(recent => recent.allowed), refused: add(recent => recent.refused) };
}
