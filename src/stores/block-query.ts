import { wholeNumber } from '../core/validate.js';
import { received, typeError } from '../core/errors.js';
import type { BlockQuery } from '../core/store.js';

const DEFAULT_COUNT = 100;
const HASH = /^[\da-f]{64}$/;

/**
 * The query with its defaults.
 *
 * @throws TypeError `ERR_LIMITKEEPER_SUBJECT` where `part` is no hash. The message does not contain it: it may be somebody's address.
 */
export function checkBlockQuery(query: BlockQuery): BlockQuery & { readonly count: number } {
  const { cursor, part, count = DEFAULT_COUNT } = query;
  if (part !== undefined && !HASH.test(part)) {
    throw typeError(
      'ERR_LIMITKEEPER_SUBJECT',
      'part must be the hash of one part of a subject, 64 lower-case hex digits. Pass subjectHash(part).',
      { option: 'part' },
    );
  }
  if (cursor !== undefined && typeof cursor !== 'string') {
    throw typeError(
      'ERR_LIMITKEEPER_OPTION_TYPE',
      `cursor must be the cursor of the page before, got ${received(cursor)}.`,
      { option: 'cursor' },
    );
  }
  return { ...query, count: wholeNumber(count, 'count', 1) };
}
