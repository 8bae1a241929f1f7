import type { AlgorithmName } from '../../algorithms/index.js';

const KINDS = [
  'sliding-window',
  'fixed-window',
  'token-bucket',
  'leaky-bucket',
  'sliding-log',
  'block',
] as const satisfies readonly (AlgorithmName | 'block')[];
export type Kind = (typeof KINDS)[number];

/** What rows have in common and need not keep each. */
export interface Series {
  /** From 1. */
  readonly number: number;
  readonly scope: Scope;
  readonly kind: Kind;
  readonly windowMs: number;
  /** How many rows are of it; with the last one it leaves. */
  rows: number;
}

export interface Scope {
  readonly name: string;
  readonly salt: number;
  readonly series: Map<number, Series>;
}

/** Windows of ten years leave three bits of a whole number. */
const keyOf = (kind: Kind, windowMs: number): number => 8 * windowMs + KINDS.indexOf(kind);

/** That of the blocks of a scope. */
export const BLOCK = keyOf('block', 0);

/**
 * The series in use. A plan may bring any number of windows: a series lives as long as it has rows, so that there are
 * never more of them than rows.
 */
export class SeriesList {
  readonly scopes = new Map<string, Scope>();
  readonly #numbered: (Series | undefined)[] = [undefined];
  readonly #free: number[] = [];
  #salts = 0;

  at(number = 0): Series {
    const series = this.#numbered[number];
    if (series === undefined) throw new Error(`no row has series ${String(number)}`);
    return series;
  }

  find(scope: string, kind: Kind, windowMs: number): Series | undefined {
    return this.scopes.get(scope)?.series.get(keyOf(kind, windowMs));
  }

  /** The same, made where it is not there, with one row more. */
  take(name: string, kind: Kind, windowMs: number): Series {
    let series = this.find(name, kind, windowMs);
    if (series === undefined) {
      const salt = Math.imul((this.#salts += 1), 0x9e3779b1);
      const scope = this.scopes.get(name) ?? { name, salt, series: new Map<number, Series>() };
      series = { number: this.#free.pop() ?? this.#numbered.length, scope, kind, windowMs, rows: 0 };
      this.#numbered[series.number] = series;
      scope.series.set(keyOf(kind, windowMs), series);
      this.scopes.set(name, scope);
    }
    series.rows += 1;
    return series;
  }

  /** Has one row less. */
  release(series: Series): void {
    series.rows -= 1;
    if (series.rows > 0) return;
    const { number, scope, kind, windowMs } = series;
    scope.series.delete(keyOf(kind, windowMs));
    if (scope.series.size === 0) this.scopes.delete(scope.name);
    this.#numbered[number] = undefined;
    this.#free.push(number);
  }
}
