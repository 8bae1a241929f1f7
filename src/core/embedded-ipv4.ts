/**
 * The IPv4 address that a translator or a tunnel has put into an IPv6 address, or `undefined`.
 *
 * Only where the client cannot choose it: answers must find their way back, and in these blocks they are routed by that
 * very IPv4 address. Anybody can write one into the lower half of an address of their own /64 (ISATAP, `::5efe:a.b.c.d`),
 * and would have 2^32 quotas: so there the prefix counts.
 *
 * @param groups the eight groups of an address.
 */
export function embeddedIPv4(groups: readonly number[]): string | undefined {
  const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0, high = 0, low = 0] = groups;
  // 6to4 (RFC 3056): one IPv4 address has a /48 of its own.
  if (first === 0x2002) return dotted(second, third);
  // Teredo (RFC 4380): the client's address behind the NAT, inverted. Server, flags and port in front of it are chosen.
  if (first === 0x2001 && second === 0) return dotted(high ^ 0xffff, low ^ 0xffff);
  if (first === 0x64 && second === 0xff9b) {
    // NAT64 and SIIT (RFC 6052), the well-known prefix.
    const isWellKnown = third === 0 && fourth === 0;
    const isInLastBits = fifth === 0 && sixth === 0;
    return (isWellKnown || isLocalUse(groups)) && isInLastBits && high !== 0 ? dotted(high, low) : undefined;
  }
  if (first !== 0 || second !== 0 || third !== 0 || fourth !== 0) return undefined;
  // IPv4-mapped (RFC 4291), IPv4-translated (RFC 2765).
  if ((fifth === 0 && sixth === 0xffff) || (fifth === 0xffff && sixth === 0)) return dotted(high, low);
  // IPv4-compatible (RFC 4291). Not `::` and `::1`, which are no 0.0.0.0/8.
  return fifth === 0 && sixth === 0 && high !== 0 ? dotted(high, low) : undefined;
}

/**
 * Does every address count by itself? Those of one link do: all of them share their first 64 bits. And those of the NAT64
 * prefixes for local use, of which nobody but the network knows where in the last 80 bits the IPv4 address stands.
 */
export function isWhole(groups: readonly number[]): boolean {
  const [first = 0] = groups;
  return (first & 0xffc0) === 0xfe80 || isLocalUse(groups);
}

/** `64:ff9b:1::/48` (RFC 8215). */
function isLocalUse([first, second, third]: readonly number[]): boolean {
  return first === 0x64 && second === 0xff9b && third === 1;
}

function dotted(high: number, low: number): string {
  return `${String(high >> 8)}.${String(high & 255)}.${String(low >> 8)}.${String(low & 255)}`;
}
