import { rangeError, received, typeError } from './errors.js';
import { optionHint } from './option-hints.js';

/**
 * The checks that options go through, by hand: the main entry loads no package, and zod takes 65–90 ms to load. Each
 * returns the value it has proven, or throws naming the option, what was expected and what came.
 */
export function wholeNumber(value: unknown, option: string, min: number): number {
  if (typeof value !== 'number') {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `${option} must be a whole number ≥ ${String(min)}, got ${received(value)}.`,
      {
        option,
      },
    );
  }
  if (!Number.isSafeInteger(value) || value < min) {
    const advice =
      option.endsWith('limit') && !Number.isFinite(value)
        ? " For no limit at all use a plan that returns 'unlimited', or mode: 'off'."
        : '';
    throw rangeError(
      'ERR_LIMITKEEPER_OPTION_RANGE',
      `${option} must be a whole number ≥ ${String(min)}, got ${received(value)}.${advice}`,
      { option },
    );
  }
  // Not -0: JSON, and so a receipt, would bring it back as 0.
  return value === 0 ? 0 : value;
}

/** Ten years: the longest window, block or hold. */
export const MAX_SECONDS = 10 * 366 * 86_400;

/** Seconds, which may have a fraction but must be whole milliseconds, as milliseconds. */
export function milliseconds(value: unknown, option: string, options: { readonly zero: boolean }): number {
  const expected = `${option} must be a number of seconds ${options.zero ? '≥ 0' : '> 0'}, at most 10 years, in whole milliseconds (0.5 is half a second)`;
  if (typeof value !== 'number') {
    throw typeError('ERR_LIMITKEEPER_OPTION_TYPE', `${expected}, got ${received(value)}.`, { option });
  }
  const ms = Math.round(value * 1000);
  // 0.1 + 0.2 seconds are 300.00000000000006 ms: that is 300, 300.5 is a mistake. The second term is the rounding of the
  // product itself, which passes 1e-6 for windows of months.
  const whole = Math.abs(value * 1000 - ms) <= 1e-6 + ms * Number.EPSILON;
  if (!whole || value < 0 || (ms === 0 && !(options.zero && value === 0)) || value > MAX_SECONDS) {
    throw rangeError('ERR_LIMITKEEPER_OPTION_RANGE', `${expected}, got ${received(value)}.`, { option });
  }
  return ms;
}

export function oneOf<T extends string>(value: unknown, option: string, names: readonly T[]): T {
  const found = names.find(name => name === value);
  if (found === undefined) {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `${option} must be one of ${names.map(name => `'${name}'`).join(', ')}, got ${received(value)}.`,
      { option },
    );
  }
  return found;
}

export function optionalFunction(value: unknown, option: string): void {
  if (value !== undefined && typeof value !== 'function') {
    throw typeError('ERR_LIMITKEEPER_OPTION_TYPE', `${option} must be a function, got ${received(value)}.`, {
      option,
    });
  }
}

export function optionalBoolean(value: unknown, option: string): void {
  if (value !== undefined && typeof value !== 'boolean') {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `${option} must be true or false, got ${received(value)}.`,
      { option },
    );
  }
}

export function plainObject(value: unknown, option: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw typeError('ERR_LIMITKEEPER_OPTION_TYPE', `${option} must be an object, got ${received(value)}.`, {
      option,
    });
  }
  return value as Readonly<Record<string, unknown>>;
}

/**
 * A mistyped option would otherwise do nothing, silently: in a rate limiter that is a hole.
 *
 * @param advise what to write in place of one that belongs elsewhere.
 */
export function knownOptions(
  options: object,
  known: readonly string[],
  where: string,
  advise: (name: string) => string | undefined = () => undefined,
): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const near = optionHint(name, known);
    const advice = advise(name) ?? (near === undefined ? undefined : `Did you mean ${near}?`);
    throw typeError(
      'ERR_LIMITKEEPER_UNKNOWN_OPTION',
      `unknown option ${JSON.stringify(name)} in ${where}.${advice === undefined ? '' : ` ${advice}`} Known are: ${known.join(', ')}.`,
      { option: where.startsWith('rules[') ? `${where}.${name}` : name },
    );
  }
}
