import type { Recent } from './api.js';
import { h } from './dom.js';

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 100;

/** Units a second at each complete step, oldest first: the step under way would always look like a fall. */
function rates(steps: readonly number[], stepSec: number): number[] {
  return steps.slice(0, -1).map(count => count / stepSec);
}

/** Two series of steps, stacked: what passed below, what was refused on top. */
class Stack {
  readonly svg = document.createElementNS(SVG, 'svg');
  readonly #allowed = document.createElementNS(SVG, 'path');
  readonly #refused = document.createElementNS(SVG, 'path');

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
    svg.append(this.#refused, this.#allowed);
  }

  draw(allowed: readonly number[], refused: readonly number[], top: number): void {
    this.svg.setAttribute('viewBox', `0 0 ${String(allowed.length)} ${String(HEIGHT)}`);
    this.#allowed.setAttribute('d', area(allowed, top));
    // Drawn behind the other: its own part is what stands out above.
    this.#refused.setAttribute(
      'd',
      area(
        allowed.map((rate, i) => rate + (refused[i] ?? 0)),
        top,
      ),
    );
  }
}

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

  /** @returns the rates of the last ten seconds, for the legend. */
  draw(recent: Recent, stepSec: number): { readonly allowed: string; readonly refused: string } {
    const allowed = rates(recent.allowed, stepSec);
    const refused = rates(recent.refused, stepSec);
    const top = niceTop(Math.max(...allowed.map((rate, i) => rate + (refused[i] ?? 0))));
    this.#stack.draw(allowed, refused, top);
    this.#scale.replaceChildren(...[top, top / 2, 0].map(rate => h('span', {}, perSec(rate))));
    const lately = (series: readonly number[]): string => {
      const last = series.slice(-5);
      return perSec(last.reduce((sum, rate) => sum + rate, 0) / last.length);
    };
    const words = { allowed: lately(allowed), refused: lately(refused) };
    const sum = (steps: readonly number[]): string => steps.reduce((a, b) => a + b, 0).toLocaleString();
    this.#stack.svg.setAttribute(
      'aria-label',
      `In the last five minutes ${sum(recent.allowed)} requests were allowed and ${sum(recent.refused)} refused; ` +
        `lately ${words.allowed} allowed and ${words.refused} refused.`,
    );
    return words;
  }
}

/** The small one in a row of the table, which says the same in numbers. */
export class Sparkline {
  readonly #stack = new Stack(false);

  constructor(parent: HTMLElement) {
    this.#stack.svg.setAttribute('aria-hidden', 'true');
    parent.append(this.#stack.svg);
  }

  draw(recent: Recent, stepSec: number): void {
    const allowed = rates(recent.allowed, stepSec);
    const refused = rates(recent.refused, stepSec);
    this.#stack.draw(allowed, refused, Math.max(0.5, ...allowed.map((rate, i) => rate + (refused[i] ?? 0))));
  }
}
