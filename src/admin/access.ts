import type { IncomingHttpHeaders } from 'node:http';
import { canonicalAddress } from '../core/address.js';
import { rangeError } from '../core/errors.js';
import { Limiter } from '../core/limiter.js';
import type { StoreFactories } from '../core/limiter-options.js';
import { NO_ADDRESS } from '../core/subject.js';
import { Keyring, presentedKeys } from '../http/keys.js';
import { refuse } from '../http/reply.js';
import type { Access, AdminOptions } from './options.js';

const KEY_HEADER = 'x-admin-key';
/** Wrong keys that one address may try in a minute before it has to wait. */
const ATTEMPTS = 10;
const ATTEMPTS_SEC = 60;

/** Who may do what. Without an admin key (or `authorize`) it opens for nobody: a forgotten variable must not open the door. */
export class Gatekeeper {
  readonly #admin: Keyring;
  readonly #read: Keyring;
  readonly #byCallback: boolean;
  /** Failed attempts, in a store of their own: they must not drive out what the application counts. */
  readonly #attempts: Limiter;

  constructor({ adminKey, readKey, authorize }: AdminOptions, factories: StoreFactories) {
    this.#admin = new Keyring(adminKey, 'adminKey');
    this.#read = new Keyring(readKey, 'readKey');
    this.#byCallback = authorize !== undefined;
    if (this.#read.sharesKeyWith(this.#admin)) {
      throw rangeError(
        'ERR_LIMITKEEPER_OPTION_RANGE',
        'readKey must differ from adminKey: whoever has it could do everything.',
        { option: 'readKey' },
      );
    }
    this.#attempts = new Limiter(
      { scope: 'admin.attempts', limit: ATTEMPTS, windowSec: ATTEMPTS_SEC, store: factories.localStore() },
      factories,
    );
  }

  /** Is there any way in? */
  get isConfigured(): boolean {
    return this.#byCallback || !this.#admin.isEmpty;
  }

  /** What the keys of a request open; `undefined`: nothing. Both rings are always searched to the end. */
  authorise(headers: IncomingHttpHeaders): Access | undefined {
    const presented = presentedKeys(headers, KEY_HEADER);
    const all = this.#admin.opensFor(presented);
    const read = this.#read.opensFor(presented);
    if (!this.isConfigured) return undefined;
    if (all) return 'all';
    return read ? 'read' : undefined;
  }

  /**
   * Turns away somebody without access. Only those are counted, so whoever has the right key comes in even from an address
   * from which wrong ones pour. A request without any key guesses nothing, and is not counted either.
   *
   * @throws Refusal 403, or 429 to an address that has tried too often.
   */
  async turnAway(headers: IncomingHttpHeaders, address: string | undefined): Promise<never> {
    if (this.#byCallback || presentedKeys(headers, KEY_HEADER).length > 0) {
      const subject = canonicalAddress(address ?? '') ?? NO_ADDRESS;
      const { allowed, retryAfterMs } = await this.#attempts.consume(subject);
      if (!allowed) {
        refuse(
          429,
          'Too many failed attempts from this address.',
          {},
          { 'Retry-After': String(Math.max(1, Math.ceil((retryAfterMs ?? 0) / 1000))) },
        );
      }
    }
    return refuse(
      403,
      this.#byCallback
        ? 'You have no access.'
        : 'A valid key is needed, as X-Admin-Key or Authorization: Bearer.',
    );
  }
}
