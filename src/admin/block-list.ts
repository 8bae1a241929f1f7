import type { BlockEntry } from '../core/store.js';
import { ask } from '../http/deadline.js';
import { refuse } from '../http/reply.js';
import type { ManagedScopes } from './scopes.js';
import { managedOf } from './targets.js';

export interface BlockList {
  readonly blocks: readonly BlockEntry[];
  /** For the next page; left out on the last one. A page may be shorter than asked for, and another follow it. */
  readonly cursor?: string;
  /** Scopes whose store keeps no list of blocks: they are missing here. */
  readonly unlisted: readonly string[];
}

/** Pages of a store read for one page of ours at most: other applications' blocks in a shared store are left out. */
const MOST_READS = 10;

/** Who is blocked now in the router's scopes (or the one named), store by store. */
export async function listBlocks(
  scopes: ManagedScopes,
  count: number,
  cursor: string | undefined,
  scope: string | undefined,
): Promise<BlockList> {
  const only = scope === undefined ? undefined : scopes.get(scope);
  const [start, after] = parseCursor(cursor, scopes.groups.length);
  const blocks: BlockEntry[] = [];
  const unlisted: string[] = [];
  let next = after;
  let reads = 0;
  for (let i = start; i < scopes.groups.length; i += 1) {
    const group = scopes.groups[i];
    const wanted = group?.scopes.filter(managed => only === undefined || managed === only) ?? [];
    while (group !== undefined && wanted.length > 0) {
      if (blocks.length >= count || reads >= MOST_READS) {
        return { blocks, cursor: cursorText(i, next), unlisted };
      }
      reads += 1;
      const from = next === undefined ? {} : { cursor: next };
      const page = await ask(() => group.store.blocked({ count: count - blocks.length, ...from }));
      blocks.push(...page.blocks.filter(entry => managedOf(wanted, entry) !== undefined));
      if (page.unlisted === true) unlisted.push(...wanted.map(managed => managed.scope));
      next = page.cursor;
      if (next === undefined) break;
    }
    next = undefined;
  }
  return { blocks, unlisted };
}

/** Which store, and where in it. Opaque to callers. */
function cursorText(group: number, cursor: string | undefined): string {
  return Buffer.from(JSON.stringify(cursor === undefined ? [group] : [group, cursor])).toString('base64url');
}

function parseCursor(text: string | undefined, groups: number): [number, string | undefined] {
  if (text === undefined) return [0, undefined];
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    const [group, cursor] = parsed as [unknown, unknown];
    if (Number.isInteger(group) && Number(group) >= 0 && Number(group) < groups) {
      if (cursor === undefined || typeof cursor === 'string') return [Number(group), cursor];
    }
  } catch {
    // Told below, like every other text that is no cursor.
  }
  return refuse(422, 'cursor: not one that was handed out here.', { errors: [{ field: 'cursor' }] });
}
