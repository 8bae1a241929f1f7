import { createHash } from 'node:crypto';
import { explained } from './explain.js';
import decideText from './lua/decide.lua';
import forgetText from './lua/forget.lua';
import indexText from './lua/index.lua';
import inspectText from './lua/inspect.lua';
import listText from './lua/list.lua';
import { errorWord } from './port.js';
import type { RedisPort } from './port.js';

/** A script as the server knows it. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

const script = (text: string): Script => ({ text, sha: createHash('sha1').update(text).digest('hex') });

export const DECIDE = script(decideText);
export const FORGET = script(forgetText);
export const INDEX = script(indexText);
export const INSPECT = script(inspectText);
export const LIST = script(listText);

/**
 * Runs a script. It is loaded lazily: a server that does not know it (a restart, a failover, SCRIPT FLUSH, another node)
 * has run nothing, and gets the same call once more with the text. Nothing else is ever sent twice.
 *
 * @param then what to make of the reply
 * @param failed what to make of the error that the call failed with (a missing right is named); left out: the promise rejects with it
 */
export function run<T>(
  port: RedisPort,
  { text, sha }: Script,
  keys: readonly string[],
  args: readonly string[],
  then: (reply: unknown) => T,
  expires = Infinity,
  failed: (error: unknown) => T = raise,
): Promise<T> {
  const [key = ''] = keys;
  const count = String(keys.length);
  return port.send(key, ['evalsha', sha, count, ...keys, ...args], expires).then(then, (error: unknown) => {
    if (errorWord(error) !== 'NOSCRIPT' || performance.now() > expires) return failed(explained(error, text));
    return port
      .send(key, ['eval', text, count, ...keys, ...args], expires)
      .then(then, (again: unknown) => failed(explained(again, text)));
  });
}

function raise(error: unknown): never {
  throw error;
}
