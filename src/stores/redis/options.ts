import { knownOptions, optionalBoolean, plainObject, wholeNumber } from '../../core/validate.js';
import type { Clock } from '../../core/clock.js';
import { rangeError, received, typeError } from '../../core/errors.js';
import { checkClock } from '../clock.js';
import { isClient } from './clients/detect.js';

export interface RedisStoreOptions {
  /**
   * The application's client: of ioredis (5, 6; `Redis` or `Cluster`), of node-redis (`createClient`, `createCluster`,
   * `createSentinel`) or of @upstash/redis. It need not be connected yet; one that nobody has started is started. The store
   * never closes it.
   */
  readonly client: object;
  /** Before every key: `prefix:{subject hash}`. Default `limits`. Stores with the same prefix share their counters. */
  readonly prefix?: string;
  /**
   * Milliseconds for which the refusal of a blocked subject may be repeated without asking Redis, 0 to 60,000; 0 turns it off.
   * An unblock by another process is obeyed at most this much later. Default 1000.
   */
  readonly denyCacheMs?: number;
  /**
   * Decisions that come together travel in one command, at most 128: those of one tick, and while the process is busy those of
   * one turn of the event loop. Default true.
   */
  readonly batching?: boolean;
  /** For tests: tells the time in place of the server. */
  readonly clock?: Clock;
}

const KNOWN = ['client', 'prefix', 'denyCacheMs', 'batching', 'clock'];
const DEFAULT_PREFIX = 'limits';
const MAX_DENY_MS = 60_000;

interface Checked {
  readonly client: unknown;
  readonly prefix: string;
  readonly denyCacheMs: number;
  readonly batching: boolean;
  readonly clock: Clock | undefined;
}

export function checkOptions(options: RedisStoreOptions): Checked {
  refuseBare(options);
  const {
    client,
    prefix = DEFAULT_PREFIX,
    denyCacheMs = 1000,
    batching = true,
    clock,
  } = plainObject(options, 'the options of RedisStore');
  knownOptions(options, KNOWN, 'the options of RedisStore');
  optionalBoolean(batching, 'batching');
  return {
    client,
    prefix: checkPrefix(prefix),
    denyCacheMs: checkDenyCache(denyCacheMs),
    batching: batching === true,
    clock: clock === undefined ? undefined : checkClock(clock),
  };
}

/** @throws TypeError for what belongs into the options: a client, or the address of a server, which may hold a password. */
function refuseBare(options: unknown): void {
  const came =
    typeof options === 'string'
      ? 'a string. Make a client of the address: new RedisStore({ client: new Redis(url) })'
      : isClient(options) && 'a client. Write new RedisStore({ client })';
  if (came === false) return;
  throw typeError(
    'ERR_LIMITKEEPER_OPTION_TYPE',
    `the options of RedisStore must be an object with a client, got ${came}.`,
    { option: 'client' },
  );
}

function checkPrefix(prefix: unknown): string {
  if (typeof prefix !== 'string') {
    throw typeError('ERR_LIMITKEEPER_OPTION_TYPE', `prefix must be a string, got ${received(prefix)}.`, {
      option: 'prefix',
    });
  }
  // Braces would decide the slot of every key, and the others are wildcards of SCAN.
  if (!/^[\w.:/@-]{1,64}$/.test(prefix)) {
    throw rangeError(
      'ERR_LIMITKEEPER_OPTION_RANGE',
      `prefix must have 1 to 64 letters, digits or . : / @ _ -, got ${received(prefix)}.`,
      { option: 'prefix' },
    );
  }
  return prefix;
}

function checkDenyCache(value: unknown): number {
  const ms = wholeNumber(value, 'denyCacheMs', 0);
  if (ms > MAX_DENY_MS) {
    throw rangeError(
      'ERR_LIMITKEEPER_OPTION_RANGE',
      `denyCacheMs must be at most ${String(MAX_DENY_MS)}, got ${received(value)}: for so long an unblock may go unnoticed.`,
      { option: 'denyCacheMs' },
    );
  }
  return ms;
}
