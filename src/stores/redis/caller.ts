import type { Clock } from '../../core/clock.js';
import { storeError } from '../../core/errors.js';
import { Keys } from './keys.js';
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

/** One per decision, in order. One that failed alone is an Error in its place. */
export type Outcomes = readonly (Outcome | Error)[];

/** Makes the calls of the deciding script, and keeps what all calls need: the names of keys, the clocks. */
export class Caller {
  readonly port: RedisPort;
  readonly keys: Keys;
  readonly clock: Clock | undefined;
  readonly #servers = new ServerClock();
  readonly keyOf: (hash: string) => string;

  constructor(port: RedisPort, prefix: string, clock: Clock | undefined) {
    this.port = port;
    this.keys = new Keys(`${port.keyPrefix}${prefix}`);
    this.keyOf = this.keys.subject;
    this.clock = clock;
  }

  /** The prescribed time and the margin of keys, as the other scripts take them. */
  get timeArgs(): [string, string] {
    return this.clock === undefined ? ['0', '0'] : [String(this.clock.now()), String(TEST_MARGIN_MS)];
  }

  /** As {@link ask}, with a promise of the outcomes. */
  decide(decisions: readonly Work[], expires: number, at = 0): Promise<Outcomes> {
    return new Promise((resolve, reject) => {
      this.ask(decisions, expires, at, resolve, reject);
    });
  }

  /**
   * Decides all in one call. Calls back once, without the turns of a promise; neither callback may throw.
   *
   * @param expires time of `performance.now()` from which nobody waits any more
   * @param at the time to decide at, where it is prescribed; 0: the server's
   * @param failed the call failed as a whole
   * @throws what a client that its user wrapped throws, or a test's clock; then nobody is called back
   */
  ask(
    decisions: readonly Work[],
    expires: number,
    at: number,
    done: (outcomes: Outcomes) => void,
    failed: (error: unknown) => void,
  ): void {
    const { keys, args } = encode(decisions, this.keyOf);
    const { clock, port } = this;
    const node = clock === undefined ? port.nodeOf(keys[0] ?? '') : undefined;
    const notAfter = this.#servers.notAfter(node, expires);
    const prescribed = clock?.now() ?? at;
    const margin = clock === undefined ? NODE_MARGIN_MS : TEST_MARGIN_MS;
    const times = prescribed === 0 ? '' : ` ${String(prescribed)} ${String(margin)}`;
    const sent = performance.now();
    const answer = (raw: unknown): void => {
      let outcomes: Outcomes;
      try {
        const reply = new ReplyReader(raw);
        if (node !== undefined && prescribed === 0)
          this.#servers.learn(node, reply.at, sent, performance.now());
        if (reply.isLate) throw tooLate();
        outcomes = decisions.map(items => reply.read(items));
      } catch (error) {
        failed(error);
        return;
      }
      done(outcomes);
    };
    void run(port, DECIDE, keys, [`${String(notAfter)}${times}`, ...args], answer, expires, failed);
  }
}

function tooLate(): Error {
  return storeError(
    'ERR_LIMITKEEPER_STORE_TIMEOUT',
    'the call reached Redis after its deadline; nothing was counted.',
  );
}
