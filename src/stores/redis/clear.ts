import type { Caller } from './caller.js';
import { explained } from './explain.js';
import { textOf } from './port.js';
import { FORGET, run } from './scripts.js';

const SCAN_COUNT = '1000';

/**
 * Forgets all keys of the store, or the cells of some scopes in them. Walks with SCAN: other clients are served in between,
 * and what is counted meanwhile may stay. Nothing is touched that does not have the exact name of a key of this store.
 */
export async function clearKeys(caller: Caller, scopes?: readonly string[]): Promise<void> {
  const { port, keys: names, timeArgs } = caller;
  const isMeant = (key: string): boolean => (scopes === undefined ? names.isOurs(key) : names.isSubject(key));
  const forget = async (key: string): Promise<void> => {
    if (scopes === undefined) await allowed(port.send(key, ['unlink', key], Infinity));
    else await run(port, FORGET, [key], [...timeArgs, ...scopes], () => undefined);
  };
  for (const send of await port.masters()) {
    let cursor = '0';
    do {
      const reply = await allowed(send(['scan', cursor, 'MATCH', names.pattern, 'COUNT', SCAN_COUNT]));
      const [next, keys] = Array.isArray(reply) ? (reply as unknown[]) : [];
      const found = Array.isArray(keys) ? keys.map(textOf) : [];
      await Promise.all(found.filter(isMeant).map(forget));
      cursor = typeof next === 'number' ? String(next) : textOf(next) || '0';
    } while (cursor !== '0');
  }
}

const allowed = (reply: Promise<unknown>): Promise<unknown> =>
  reply.catch((error: unknown) => {
    throw explained(error);
  });
