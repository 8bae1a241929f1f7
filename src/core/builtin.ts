import type * as AsyncHooks from 'node:async_hooks';
import type * as Crypto from 'node:crypto';
import { createRequire } from 'node:module';
import type * as Net from 'node:net';

/**
 * Modules of Node that are loaded when first needed: `node:crypto` and `node:net`, say, take longer to load than the library
 * itself, and an Express app has them loaded by the time of its first request.
 */
const load = createRequire(process.execPath) as (name: string) => unknown;

let asyncHooks: typeof AsyncHooks | undefined;
let crypto: typeof Crypto | undefined;
let net: typeof Net | undefined;

export function nodeAsyncHooks(): typeof AsyncHooks {
  asyncHooks ??= load('node:async_hooks') as typeof AsyncHooks;
  return asyncHooks;
}

export function nodeCrypto(): typeof Crypto {
  crypto ??= load('node:crypto') as typeof Crypto;
  return crypto;
}

export function nodeNet(): typeof Net {
  net ??= load('node:net') as typeof Net;
  return net;
}
