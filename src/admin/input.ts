import * as z from 'zod/mini';
import { milliseconds } from '../core/validate.js';

/** What the routes take. Unknown fields are refused: a mistyped `scope` would otherwise mean all scopes. */

const MOST_PARTS = 16;
const MOST_BLOCKS = 500;

const NO_HASH = 'must be a subject hash of 64 hex digits';

const hash = z.string(NO_HASH).check(z.regex(/^[\da-fA-F]{64}$/, NO_HASH), z.toLowerCase());

const NO_PREFIX = 'must be a subject hash of 64 hex digits, or the first 12 or more of one';

/** The whole hash, or its beginning, as lists show it: enough to look, never enough to act. */
const hashOrPrefix = z.string(NO_PREFIX).check(z.regex(/^[\da-fA-F]{12,64}$/, NO_PREFIX), z.toLowerCase());

const part = z.union(
  [
    z.string().check(z.minLength(1)),
    // JSON.parse has rounded what is larger, and another subject would be meant.
    z.number().check(z.refine(number => !Number.isInteger(number) || Number.isSafeInteger(number))),
  ],
  'must be a non-empty text or a number (whole ones beyond 2^53 as a text)',
);

const parts = z
  .array(part)
  .check(z.minLength(1), z.maxLength(MOST_PARTS, `must have at most ${String(MOST_PARTS)} parts`));

const SUBJECT_FORMS = 'must be exactly one of { parts: [...] }, { hash } and { part }';

const isOneForm = z.refine<object>(
  forms => Object.values(forms).filter(form => form !== undefined).length === 1,
  SUBJECT_FORMS,
);

const subject = fields({
  parts: z.optional(parts),
  hash: z.optional(hash),
  part: z.optional(part),
}).check(isOneForm);

const lookedUp = fields({
  parts: z.optional(parts),
  hash: z.optional(hashOrPrefix),
  part: z.optional(part),
}).check(isOneForm);

/** Whom an operator means: the whole key, its hash, or everybody blocked with this part. */
export type SubjectInput = z.output<typeof subject>;

const scope = z.string().check(z.minLength(1));

export const subjectBody = fields({ subject, scope: z.optional(scope) });
export const statusBody = fields({ subject: lookedUp, scope: z.optional(scope) });

const NO_DURATION = 'must be a number of seconds > 0, at most 10 years, in whole milliseconds';

export const blockBody = fields({
  subject,
  scope,
  blockSec: z.optional(z.number(NO_DURATION).check(z.refine(isDuration, NO_DURATION))),
  forever: z.optional(z.literal(true, 'must be true, or left out')),
}).check(
  z.refine(({ blockSec, forever }) => (blockSec === undefined) !== (forever === undefined), {
    path: ['blockSec'],
    error: 'exactly one of blockSec (seconds) and forever: true is needed',
  }),
);

export const statusQuery = fields({ hash: hashOrPrefix, scope: z.optional(scope) });

const NO_COUNT = `must be a whole number from 1 to ${String(MOST_BLOCKS)}`;

const count = z.pipe(
  z.string().check(z.regex(/^[1-9]\d{0,2}$/, NO_COUNT)),
  z.pipe(z.transform(Number), z.number().check(z.lte(MOST_BLOCKS, NO_COUNT))),
);

export const blocksQuery = fields({
  scope: z.optional(scope),
  cursor: z.optional(z.string().check(z.maxLength(1000, 'is not one that was handed out here'))),
  count: z.optional(count),
});

export const scopesQuery = fields({ recent: z.optional(z.enum(['0', '1'], 'must be 0 or 1')) });

/** An object of these fields alone. An unknown one is refused, in words that name the known ones and never what came. */
function fields<S extends z.core.$ZodLooseShape>(shape: S): z.ZodMiniObject<S, z.core.$strict> {
  const names = Object.keys(shape).join(', ');
  return z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? `has a field that is none of: ${names}` : undefined),
  });
}

function isDuration(sec: number): boolean {
  try {
    return milliseconds(sec, 'blockSec', { zero: false }) > 0;
  } catch {
    return false;
  }
}
