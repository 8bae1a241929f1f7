import { storeError } from '../../core/errors.js';
import type { LimitkeeperError } from '../../core/errors.js';
import { textOf } from './port.js';

const CODE = 'ERR_LIMITKEEPER_STORE_RIGHTS';

/**
 * What to throw for an error of Redis: where the user of the connection lacks a right, an error that names it (a server denies
 * a command by name, but inside a script some versions tell only the line), and where the connection is used for something
 * else, one that says so.
 *
 * @param script the text that was run
 */
export function explained(error: unknown, script = ''): unknown {
  const message = error instanceof Error ? error.message : '';
  const named = /no permissions? to run the '([\w|-]+)' command/i.exec(message)?.[1];
  if (named !== undefined) return lacking(named, error);
  if (/can't run this command or subcommand/i.test(message))
    return lacking(commandAt(script, message), error);
  if (
    /no permissions? to access (?:a|one of the|the '.*') keys?|can't access at least one of the keys/i.test(
      message,
    )
  ) {
    return storeError(
      CODE,
      'the Redis user may not use the keys of this store; allow all that begin with its prefix, e.g. ~limits:* ' +
        '(docs/redis.md, "Rights").',
      { cause: error },
    );
  }
  // The client's words, or the server's.
  if (/in subscriber mode|allowed in this context/i.test(message)) return astray('is subscribed', error);
  return error;
}

/** A client that its application also uses otherwise. */
export const astray = (how: string, cause?: unknown): LimitkeeperError =>
  storeError(
    'ERR_LIMITKEEPER_STORE',
    `the client ${how}, where a decision would go astray; give the store a client of its own.`,
    { cause },
  );

/** What a script answers is a list; anything else has become of the call on its way. */
export function listReply(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply as unknown[];
  throw textOf(reply) === 'QUEUED' ? astray('is inside a MULTI') : noReply();
}

export const noReply = (): LimitkeeperError =>
  storeError('ERR_LIMITKEEPER_STORE', 'Redis answered a script with something that is not its reply.');

export const isDenial = (error: unknown): boolean =>
  error instanceof Error && (error as Partial<LimitkeeperError>).code === CODE;

function lacking(command: string | undefined, cause: unknown): LimitkeeperError {
  const right = command === undefined ? 'a command of the script' : `+${command.toLowerCase()}`;
  return storeError(
    CODE,
    `the Redis user lacks the right ${right}; docs/redis.md lists under "Rights" what the store needs.`,
    { cause },
  );
}

/** The command that the script calls at, or last before, the line that the message names. */
function commandAt(script: string, message: string): string | undefined {
  const line = Number(/user_script:\s*(\d+)/.exec(message)?.[1]);
  const calls = script
    .split('\n')
    .slice(0, line)
    .join('\n')
    .matchAll(/redis\.p?call\('(\w+)'/g);
  return [...calls].at(-1)?.[1];
}
