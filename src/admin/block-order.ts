import type { BlockEntry } from '../core/store.js';
import { invalid } from '../http/input.js';

/** What tells where a block stands in the list. */
export type Place = Pick<BlockEntry, 'since' | 'subjectHash' | 'scope'>;

/** Newest first, and where two began in the same millisecond in an order that is the same on every store. */
export function newestFirst(a: Place, b: Place): number {
  if (a.since !== b.since) return b.since - a.since;
  return compare(a.subjectHash, b.subjectHash) || compare(a.scope, b.scope);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The block behind which a page begins; it stays a place in the list when blocks come and go. Opaque to callers. */
export function cursorText({ since, subjectHash, scope }: Place): string {
  return Buffer.from(JSON.stringify([since, subjectHash, scope])).toString('base64url');
}

/** @throws Refusal 422 for what was not made by {@link cursorText}. */
export function parseCursor(text: string): Place {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (Array.isArray(parsed) && parsed.length === 3) {
      const [since, subjectHash, scope] = parsed as unknown[];
      if (Number.isFinite(since) && typeof subjectHash === 'string' && typeof scope === 'string') {
        return { since: since as number, subjectHash, scope };
      }
    }
  } catch {
    // Told below, like every other text that is no cursor.
  }
  return invalid([{ field: 'cursor', detail: 'is not one that was handed out here' }]);
}
