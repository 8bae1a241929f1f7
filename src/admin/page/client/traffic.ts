import type { Overview } from './api.js';
import { TrafficChart } from './chart.js';
import type { Desk } from './desk.js';
import { byId, setText, show } from './dom.js';
import { Refusals } from './refusals.js';
import { Rules } from './rules.js';
import { offer } from './scope-choice.js';

/** A process that has not answered for so long may be gone: another one is shown in its place. */
const STICKY_MS = 10_000;
/** One that has not answered for so long is none that answers here. */
const GONE_MS = 30_000;

/** What happens to requests: the chart of all or of one scope, who refuses, the rules. */
export class Traffic {
  readonly #chart = new TrafficChart(byId('traffic-chart'));
  readonly #select = byId('traffic-scope', HTMLSelectElement);
  readonly #refusals: Refusals;
  readonly #rules: Rules;
  /** When each process has answered last. */
  readonly #instances = new Map<string, number>();
  #shown: Overview | undefined;

  constructor(desk: Desk) {
    this.#refusals = new Refusals(desk);
    this.#rules = new Rules(desk);
    this.#select.addEventListener('change', () => {
      this.#draw();
    });
  }

  /** Behind a load balancer each answer may be another process's, and counts are each one's own: one of them is shown. */
  show(overview: Overview): void {
    const now = Date.now();
    const shownAt = this.#instances.get(this.#shown?.instance ?? '') ?? 0;
    this.#instances.set(overview.instance, now);
    for (const [instance, answeredAt] of this.#instances) {
      if (now - answeredAt > GONE_MS) this.#instances.delete(instance);
    }
    const isOther = this.#shown !== undefined && this.#shown.instance !== overview.instance;
    if (isOther && now - shownAt < STICKY_MS) return;
    this.#shown = overview;
    offer(this.#select, this.scopes, 'all together');
    const others = [...this.#instances.keys()].filter(instance => instance !== overview.instance).length;
    this.#rules.show(overview, others);
    this.#refusals.show(overview);
    this.#trouble(overview);
    this.#draw();
  }

  get scopes(): readonly string[] {
    return this.#shown?.scopes.map(({ scope }) => scope) ?? [];
  }

  only(scope: string): void {
    this.#select.value = scope;
    this.#draw();
    byId('traffic-title').scrollIntoView({ block: 'nearest' });
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
    const { requests, scopes, stepSec } = this.#shown;
    const chosen = scopes.find(({ scope }) => scope === this.#select.value);
    const { recent } = chosen ?? requests;
    const words = this.#chart.draw(recent, stepSec, chosen?.scope ?? '');
    setText(byId('rate-allowed'), words.allowed);
    setText(byId('rate-refused'), words.refused);
    setText(byId('rate-would'), words.would);
    show(byId('legend-would'), chosen?.mode === 'shadow');
    show(byId('legend-refused'), chosen?.mode !== 'shadow');
  }
}
