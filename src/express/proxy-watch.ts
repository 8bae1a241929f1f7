import type { IncomingHttpHeaders } from 'node:http';
import type { BlockList } from 'node:net';
import { nodeNet } from '../core/builtin.js';
import { NO_ADDRESS } from '../core/subject.js';
import { clientIp } from './client-ip.js';
import type { AddressedRequest } from './client-ip.js';
import { warnOnce } from '../core/warn-once.js';

/** What is needed of a request. Without an `app` it is not Express's, and there is no setting to advise on. */
export interface WatchedRequest extends AddressedRequest {
  readonly app?: { get(setting: string): unknown };
  readonly headers: IncomingHttpHeaders;
}

/** So many requests, all of one private address, are no coincidence any more. */
const ENOUGH = 100;

/**
 * Looks at the first requests for the mistakes that make addresses useless as keys: `trust proxy` true, `trust proxy` off
 * behind a proxy, and all traffic from one private address. One for each instance that counts by address; once it has
 * made up its mind a request costs it one comparison.
 *
 * One private address: the first 100 requests, over all, came from a single private, link-local or carrier-grade NAT
 * address, or without any (a unix socket). This very machine counts only where a forwarding header names somebody else as
 * the client: local development and health checks are not worth a warning.
 */
export class ProxyWatch {
  #app: WatchedRequest['app'];
  #trusts = false;
  #address: string | undefined;
  /** Requests left until one address is suspicious; 0: that question is settled. */
  #left = ENOUGH;
  #done = false;

  /** Never throws: `req.ip` runs a function of the user's where `trust proxy` is one, and a warning must fail no request. */
  observe(req: WatchedRequest): void {
    if (this.#done || req.app === undefined) return;
    try {
      this.#look(req, req.app);
    } catch {
      this.#done = true;
    }
  }

  #look(req: WatchedRequest, app: NonNullable<WatchedRequest['app']>): void {
    if (app !== this.#app) this.#ask(app);
    if (!this.#trusts && req.headers['x-forwarded-for'] !== undefined) {
      warnOnce('LIMITKEEPER_TRUST_PROXY_OFF');
      this.#done = true;
      return;
    }
    if (this.#left > 0) this.#count(req);
    // While nothing is trusted a proxy may still announce itself.
    this.#done = this.#trusts && this.#left === 0;
  }

  #ask(app: NonNullable<WatchedRequest['app']>): void {
    this.#app = app;
    const trust = app.get('trust proxy');
    if (trust === true) warnOnce('LIMITKEEPER_TRUST_PROXY_TRUE');
    this.#trusts = Boolean(trust);
  }

  #count(req: WatchedRequest): void {
    const address = clientIp(req, 128).replace('/128', '');
    if (isIn(LOOPBACK, address) && !comesFromElsewhere(req.headers)) return;
    this.#address ??= address;
    if (address !== this.#address || !(address === NO_ADDRESS || isIn(PRIVATE, address))) {
      this.#left = 0;
      return;
    }
    this.#left -= 1;
    if (this.#left === 0) warnOnce('LIMITKEEPER_ONE_PRIVATE_ADDRESS');
  }
}

/** Does a proxy say that it speaks for a client on another machine? */
function comesFromElsewhere(headers: IncomingHttpHeaders): boolean {
  return ['x-forwarded-for', 'x-real-ip', 'forwarded'].some(name => {
    const value = headers[name];
    return (
      typeof value === 'string' && !/^\s*(?:for=)?"?\[?(?:127\.|::1\b|::ffff:127\.|localhost\b)/i.test(value)
    );
  });
}

/** Made when first asked for: most processes never need it. */
function listOf(...subnets: readonly (readonly [net: string, prefix: number])[]): () => BlockList {
  let list: BlockList | undefined;
  return () => {
    if (list !== undefined) return list;
    list = new (nodeNet().BlockList)();
    for (const [net, prefix] of subnets) list.addSubnet(net, prefix, net.includes(':') ? 'ipv6' : 'ipv4');
    return list;
  };
}

const isIn = (list: () => BlockList, address: string): boolean =>
  address !== NO_ADDRESS && list().check(address, address.includes(':') ? 'ipv6' : 'ipv4');

const LOOPBACK = listOf(['127.0.0.0', 8], ['::1', 128]);

/** RFC 1918, RFC 6598 (carrier-grade NAT), RFC 3927, RFC 4193, RFC 4291, and this machine. */
const PRIVATE = listOf(
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['169.254.0.0', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['127.0.0.0', 8],
  ['::1', 128],
);
