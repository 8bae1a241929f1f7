import * as z from 'zod';
import { milliseconds } from '../core/validate.js';

/** What the routes take. Unknown fields are refused: a mistyped `scope` would otherwise mean all scopes. */

const MOST_PARTS = 16;
const MOST_BLOCKS = 500;

const NO_HASH = 'must be a subject hash of 64 hex digits';

const hash = z
  .string(NO_HASH)
  .regex(/^[\da-fA-F]{64}$/, NO_HASH)
  .transform(text => text.toLowerCase());

const NO_PREFIX = 'must be a subject hash of 64 hex digits, or the first 12 or more of one';

/** The whole hash, or its beginning, as lists show it: enough to look, never enough to act. */
const hashOrPrefix = z
  .string(NO_PREFIX)
  .regex(/^[\da-fA-F]{12,64}$/, NO_PREFIX)
  .transform(text => text.toLowerCase());

const part = z.union(
  [
    z.string().min(1),
    // JSON.parse has rounded what is larger, and another subject would be meant.
    z.number().refine(number => !Number.isInteger(number) || Number.isSafeInteger(number)),
  ],
  'must be a non-empty text or a number (whole ones beyond 2^53 as a text)',
);

const parts = z
  .array(part)
  .min(1)
  .max(MOST_PARTS, `must have at most ${String(MOST_PARTS)} parts`);

const SUBJECT_FORMS = 'must be exactly one of { parts: [...] }, { hash } and { part }';

const isOneForm = (forms: object): boolean =>
  Object.values(forms).filter(form => form !== undefined).length === 1;

const subject = fields({ parts: parts.optional(), hash: hash.optional(), part: part.optional() }).refine(
  isOneForm,
  SUBJECT_FORMS,
);

const lookedUp = fields({
  parts: parts.optional(),
  hash: hashOrPrefix.optional(),
  part: part.optional(),
}).refine(isOneForm, SUBJECT_FORMS);

/** Whom an operator means: the whole key, its hash, or everybody blocked with this part. */
export type SubjectInput = z.output<typeof subject>;

const scope = z.string().min(1);

export const subjectBody = fields({ subject, scope: scope.optional() });
export const statusBody = fields({ subject: lookedUp, scope: scope.optional() });

const NO_DURATION = 'must be a number of seconds > 0, at most 10 years, in whole milliseconds';

export const blockBody = fields({
  subject,
  scope,
  blockSec: z.number(NO_DURATION).refine(isDuration, NO_DURATION).optional(),
  forever: z.literal(true, 'must be true, or left out').optional(),
}).refine(({ blockSec, forever }) => (blockSec === undefined) !== (forever === undefined), {
  path: ['blockSec'],
  error: 'exactly one of blockSec (seconds) and forever: true is needed',
});

export const statusQuery = fields({ hash: hashOrPrefix, scope: scope.optional() });

const NO_COUNT = `must be a whole number from 1 to ${String(MOST_BLOCKS)}`;

export const blocksQuery = fields({
  scope: scope.optional(),
  cursor: z.string().max(1000, 'is not one that was handed out here').optional(),
  count: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, NO_COUNT)
    .transform(Number)
    .refine(count => count <= MOST_BLOCKS, NO_COUNT)
    .optional(),
});

export const scopesQuery = fields({ recent: z.enum(['0', '1'], 'must be 0 or 1').optional() });

/** An object of these fields alone. An unknown one is refused, in words that name the known ones and never what came. */
function fields<S extends z.core.$ZodLooseShape>(shape: S): z.ZodObject<S, z.core.$strict> {
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
