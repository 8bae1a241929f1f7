/**
 * What a row has to keep to.
 *
 * @param {number} value as measured
 * @param {number} atMost
 * @param {string} unit behind the number, e.g. `× hitlimit`
 */
export const target = (value, atMost, unit) => ({ value, atMost, unit, met: value <= atMost });
