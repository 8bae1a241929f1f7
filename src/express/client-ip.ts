import { canonicalAddress, DEFAULT_IPV6_PREFIX } from '../core/address.js';
import { rangeError, received } from '../core/errors.js';
import { NO_ADDRESS } from '../core/subject.js';

/** What is needed of a request: Express's, or a bare `http.IncomingMessage`. */
export interface AddressedRequest {
  /** The client's address as Express works it out from its setting `trust proxy`. */
  readonly ip?: string | undefined;
  readonly socket?: { readonly remoteAddress?: string | undefined } | null | undefined;
}

/**
 * The client's address as Express sees it (`req.ip`, so the setting `trust proxy` decides), in one spelling: IPv4, also
 * where it came within IPv6 (IPv4-mapped, NAT64, SIIT, 6to4, Teredo), or the prefix of an IPv6 address, e.g.
 * `2001:db8:0:aa00::/56`; link-local ones whole; without zone and port. Of a request that Express has not seen it is the
 * address of the socket.
 *
 * A request without an address (its socket is gone, or it came over a unix socket) has the subject `[no address]`. So has
 * one whose `X-Forwarded-For` carries, where a trusted proxy puts the client, something that is no IP address (`unknown`,
 * `1.2.3.4.5`): taken as it is, every such text would be a fresh quota.
 *
 * @param ipv6Prefix bits of an IPv6 address that count as one client, 32 to 128. Default 56.
 * @throws RangeError `ERR_LIMITKEEPER_OPTION_RANGE` for any other prefix.
 */
export function clientIp(req: AddressedRequest, ipv6Prefix: number = DEFAULT_IPV6_PREFIX): string {
  if (!Number.isInteger(ipv6Prefix) || ipv6Prefix < 32 || ipv6Prefix > 128) {
    throw rangeError(
      'ERR_LIMITKEEPER_OPTION_RANGE',
      `ipv6Prefix must be a whole number from 32 to 128, got ${received(ipv6Prefix)}.`,
      { option: 'ipv6Prefix' },
    );
  }
  const address = req.ip ?? req.socket?.remoteAddress;
  if (typeof address !== 'string') return NO_ADDRESS;
  return canonicalAddress(address.trim(), ipv6Prefix) ?? NO_ADDRESS;
}
