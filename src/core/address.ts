import { nodeNet } from './builtin.js';
import { embeddedIPv4, isWhole } from './embedded-ipv4.js';

/** The default length of the IPv6 prefix that counts as one client: what providers hand to one customer at most. */
export const DEFAULT_IPV6_PREFIX = 56;

/**
 * One text for one address, or `undefined` when the text is no IP address: a client that can write their address in two
 * ways, or pick another one of their /64 for each request, must not get a second quota.
 *
 * IPv4 stays as it is; IPv6 that a translator or a tunnel made of IPv4 becomes that IPv4 in every spelling; a link-local
 * address stays whole; other IPv6 is cut to its prefix and written as RFC 5952 asks, e.g. `2001:db8:0:aa00::/56`. A zone
 * (`%eth0`) and a port (`1.2.3.4:80`, `[::1]:80`) are dropped.
 */
export function canonicalAddress(text: string, ipv6Prefix: number = DEFAULT_IPV6_PREFIX): string | undefined {
  if (isDottedQuad(text)) return text;
  // Most keys are no address; this decides it without a parser. 100: more than an IPv6 address with brackets, zone and port.
  if (text.length > 100 || !/^\[?[\da-f]*[:.]/i.test(text)) return undefined;
  const address = text
    .replace(/^\[([^\]]*)\](?::\d{1,5})?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/, '$1');
  const { isIPv4, isIPv6 } = nodeNet();
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return undefined;
  const groups = hextets(address.replace(/%.*$/, ''));
  const prefix = isWhole(groups) ? 128 : ipv6Prefix;
  return embeddedIPv4(groups) ?? `${compress(mask(groups, prefix))}/${String(prefix)}`;
}

/** Is it an IPv4 address as it is usually written? Asked of nearly every request, hence without an expression. */
function isDottedQuad(text: string): boolean {
  const { length } = text;
  if (length < 7 || length > 15) return false;
  let dots = 0;
  let digits = 0;
  let value = 0;
  for (let i = 0; i < length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 46) {
      if (digits === 0) return false;
      dots += 1;
      digits = 0;
      value = 0;
    } else {
      // Neither another character, nor a number above 255, nor one with a leading zero, which some read as octal.
      if (code < 48 || code > 57 || (digits > 0 && value === 0)) return false;
      digits += 1;
      value = 10 * value + code - 48;
      if (value > 255) return false;
    }
  }
  return dots === 3 && digits > 0;
}

/** The eight groups of a valid IPv6 address without zone. */
function hextets(address: string): number[] {
  const hexadecimal = address.replace(
    /(\d+)\.(\d+)\.(\d+)\.(\d+)$/,
    (_, a: string, b: string, c: string, d: string) =>
      `${((Number(a) << 8) | Number(b)).toString(16)}:${((Number(c) << 8) | Number(d)).toString(16)}`,
  );
  const [head = '', tail] = hexadecimal.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = new Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].map(group => parseInt(group, 16));
}

function mask(groups: readonly number[], prefix: number): number[] {
  return groups.map((group, i) => {
    const kept = Math.min(16, Math.max(0, prefix - 16 * i));
    return group & (0xffff << (16 - kept)) & 0xffff;
  });
}

/** RFC 5952: lower case, no leading zeros, `::` for the first longest run of two or more zero groups. */
function compress(groups: readonly number[]): string {
  let best = { start: 0, length: 0 };
  for (let i = 0, start = 0; i < groups.length; i += 1) {
    if (groups[i] !== 0) start = i + 1;
    else if (i + 1 - start > best.length) best = { start, length: i + 1 - start };
  }
  const text = (part: readonly number[]): string => part.map(group => group.toString(16)).join(':');
  if (best.length < 2) return text(groups);
  return `${text(groups.slice(0, best.start))}::${text(groups.slice(best.start + best.length))}`;
}
