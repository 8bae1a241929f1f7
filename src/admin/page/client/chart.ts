import type { Recent } from './api.js';
import { h } from './dom.js';

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 100;

/** Units a second at each complete step, oldest first: the step under way would always look like a fall. */
function rates(steps: readonly number[], stepSec: number): number[] {
  return steps.slice(0, -1).map(count => count / stepSec);
}

/** Series of steps, stacked: what passed below; on top what was refused, or what a rule in shadow mode would have refused. */
class Stack {
  readonly svg = document.createElementNS(SVG, 'svg');
  readonly #allowed = document.createElementNS(SVG, 'path');
  readonly #refused = document.createElementNS(SVG, 'path');
  readonly #would = document.createElementNS(SVG, 'path');

  constructor(withGrid: boolean) {
    const { svg } = this;
    svg.setAttribute('preserveAspectRatio', 'none');
    if (withGrid) {
      for (const y of [0, HEIGHT / 2, HEIGHT]) {
        const line = document.createElementNS(SVG, 'path');
        line.setAttribute('class', 'grid');
        line.setAttribute('d', `M0 ${String(y)}H1000`);
        svg.append(line);
      }
    }
    this.#allowed.setAttribute('class', 'allowed');
    this.#refused.setAttribute('class', 'refused');
    this.#would.setAttribute('class', 'would');
    // The higher ones behind: of each its own part is what stands out above.
    svg.append(this.#would, this.#refused, this.#allowed);
  }

  draw({ allowed, refused, would }: Rates, top: number): void {
    this.svg.setAttribute('viewBox', `0 0 ${String(allowed.length)} ${String(HEIGHT)}`);
    const both = add(allowed, refused);
    this.#allowed.setAttribute('d', area(allowed, top));
    this.#refused.setAttribute('d', area(both, top));
    this.#would.setAttribute('d', area(add(both, would), top));
  }
}

/** A second, at each complete step. */
interface Rates {
  readonly allowed: readonly number[];
  readonly refused: readonly number[];
  readonly would: readonly number[];
}

function ratesOf({ allowed, refused, shadowRefused = [] }: Recent, stepSec: number): Rates {
  return {
    allowed: rates(allowed, stepSec),
    refused: rates(refused, stepSec),
    would: rates(shadowRefused, stepSec),
  };
}

function add(a: readonly number[], b: readonly number[]): number[] {
  return a.map((rate, i) => rate + (b[i] ?? 0));
}

const highest = ({ allowed, refused, would }: Rates): number =>
  Math.max(...add(add(allowed, refused), would));

/** A step curve down to the axis. */
function area(values: readonly number[], top: number): string {
  const y = (value: number): string => (HEIGHT - (value / top) * HEIGHT).toFixed(2);
  const steps = values.map((value, i) => `V${y(value)}H${String(i + 1)}`).join('');
  return `M0 ${String(HEIGHT)}${steps}V${String(HEIGHT)}Z`;
}

/** The smallest of 1, 2, 5, 10, 20 … that is not below the highest point. */
function niceTop(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(highest, 0.5)));
  return [1, 2, 5, 10].map(step => step * power).find(step => step >= highest) ?? 10 * power;
}

const perSec = (rate: number): string =>
  `${rate >= 10 || rate === 0 ? String(Math.round(rate)) : rate.toFixed(1)}/s`;

/** The large chart with its scale and its words. */
export class TrafficChart {
  readonly #stack = new Stack(true);
  readonly #scale = h('div', { class: 'scale', 'aria-hidden': 'true' });

  constructor(parent: HTMLElement) {
    this.#stack.svg.setAttribute('role', 'img');
    const times = ['5 min ago', '4', '3', '2', '1', 'now'].map(text => h('span', {}, text));
    parent.append(
      this.#scale,
      this.#stack.svg,
      h('div', { class: 'times', 'aria-hidden': 'true' }, ...times),
    );
  }

  /**
   * @param what `''` for requests, or the scope whose verdicts these are.
   * @returns the rates of the last ten seconds, for the legend.
   */
  draw(recent: Recent, stepSec: number, what: string): Readonly<Record<keyof Rates, string>> {
    const shown = ratesOf(recent, stepSec);
    const top = niceTop(highest(shown));
    this.#stack.draw(shown, top);
    this.#scale.replaceChildren(...[top, top / 2, 0].map(rate => h('span', {}, perSec(rate))));
    const words = {
      allowed: lately(shown.allowed),
      refused: lately(shown.refused),
      would: lately(shown.would),
    };
    const would = sum(recent.shadowRefused ?? []);
    this.#stack.svg.setAttribute(
      'aria-label',
      `In the last five minutes ${sum(recent.allowed).toLocaleString()} requests were allowed ` +
        `and ${sum(recent.refused).toLocaleString()} refused${what === '' ? '' : ` by ${what}`}` +
        `${would === 0 ? '' : `, and ${would.toLocaleString()} would have been`}; ` +
        `lately ${words.allowed} allowed and ${words.refused} refused.`,
    );
    return words;
  }
}

export function sum(steps: readonly number[]): number {
  return steps.reduce((a, b) => a + b, 0);
}

function lately(series: readonly number[]): string {
  const last = series.slice(-5);
  return perSec(last.length === 0 ? 0 : sum(last) / last.length);
}

/** The small one in a row of the table, which says the same in numbers. */
export class Sparkline {
  readonly #stack = new Stack(false);

  constructor(parent: HTMLElement) {
    this.#stack.svg.setAttribute('aria-hidden', 'true');
    parent.append(this.#stack.svg);
  }

  draw(recent: Recent, stepSec: number): void {
    const shown = ratesOf(recent, stepSec);
    this.#stack.draw(shown, Math.max(0.5, highest(shown)));
  }
}
