import type { Clock } from '../../core/clock.js';
import { storeError } from '../../core/errors.js';
import { ReplyReader } from './outcome.js';
import type { Outcome } from './outcome.js';
import type { RedisPort } from './port.js';
import { DECIDE, run } from './scripts.js';
import { ServerClock } from './server-clock.js';
import { encode } from './work.js';
import type { Work } from './work.js';

/** A test's time stands still while the server's goes on: keys must outlive the test. */
const TEST_MARGIN_MS = 60_000;
/** Where one node's time is used on another, whose clock may be ahead. */
const NODE_MARGIN_MS = 1000;

/** Makes the calls of the deciding script, and keeps what all calls need: the prefix, the clocks. */
export class Caller {
  readonly port: RedisPort;
  readonly prefix: string;
  readonly clock: Clock | undefined;
  readonly #servers = new ServerClock();
  readonly keyOf: (hash: string) => string;

  constructor(port: RedisPort, prefix: string, clock: Clock | undefined) {
    this.port = port;
    this.prefix = `${port.keyPrefix}${prefix}`;
    this.clock = clock;
    const head = `${this.prefix}:{`;
    this.keyOf = hash => `${head}${hash}}`;
  }

  /** The prescribed time and the margin of keys, as the other scripts take them. */
  get timeArgs(): [string, string] {
    return this.clock === undefined ? ['0', '0'] : [String(this.clock.now()), String(TEST_MARGIN_MS)];
  }

  /**
   * Decides all in one call. Rejects when the call failed as a whole; a decision that failed alone is an Error in its place.
   *
   * @param expires time of `performance.now()` from which nobody waits any more
   * @param at the time to decide at, where it is prescribed
   */
  decide(decisions: readonly Work[], expires: number, at = 0): Promise<(Outcome | Error)[]> {
    const { keys, tail } = encode(decisions, this.keyOf);
    const { clock, port } = this;
    const node = clock === undefined ? port.nodeOf(keys[0] ?? '') : undefined;
    const notAfter = this.#servers.notAfter(node, expires);
    const prescribed = clock?.now() ?? at;
    const margin = clock !== undefined ? TEST_MARGIN_MS : at > 0 ? NODE_MARGIN_MS : 0;
    const argument = `[${String(prescribed)},${String(margin)},${String(notAfter)},${tail}]`;
    const sent = performance.now();
    const answer = (raw: unknown): (Outcome | Error)[] => {
      const reply = new ReplyReader(raw);
      if (node !== undefined && prescribed === 0)
        this.#servers.learn(node, reply.at, sent, performance.now());
      if (reply.isLate) throw tooLate();
      return decisions.map(items => reply.read(items));
    };
    return run(port, DECIDE, keys, [argument], answer, expires);
  }
}

function tooLate(): Error {
  return storeError(
    'ERR_LIMITKEEPER_STORE_TIMEOUT',
    'the call reached Redis after its deadline; nothing was counted.',
  );
}
