import * as z from 'zod';
import { milliseconds } from '../core/check.js';

/** What the routes take. Unknown fields are refused: a mistyped `scope` would otherwise mean all scopes. */

const MOST_PARTS = 16;
const MOST_BLOCKS = 500;

const hash = z
  .string()
  .regex(/^[\da-fA-F]{64}$/, 'must be a subject hash of 64 hex digits')
  .transform(text => text.toLowerCase());

const part = z.union(
  [
    z.string().min(1),
    // JSON.parse has rounded what is larger, and another subject would be meant.
    z.number().refine(number => !Number.isInteger(number) || Number.isSafeInteger(number)),
  ],
  'must be a non-empty string or a number (whole ones beyond 2^53 as a string)',
);

const SUBJECT_FORMS = 'exactly one of { parts: [...] }, { hash } and { part } is needed';

const subject = z
  .strictObject({
    parts: z.array(part).min(1).max(MOST_PARTS).optional(),
    hash: hash.optional(),
    part: part.optional(),
  })
  .refine(
    ({ parts, hash: digest, part: one }) =>
      [parts, digest, one].filter(form => form !== undefined).length === 1,
    SUBJECT_FORMS,
  );

/** Whom an operator means: the whole key, its hash, or everybody blocked with this part. */
export type SubjectInput = z.output<typeof subject>;

const scope = z.string().min(1);

export const subjectBody = z.strictObject({ subject, scope: scope.optional() });

export const blockBody = z
  .strictObject({
    subject,
    scope,
    blockSec: z
      .number()
      .refine(isDuration, 'must be > 0, at most 10 years, in whole milliseconds')
      .optional(),
    forever: z.literal(true).optional(),
  })
  .refine(
    ({ blockSec, forever }) => (blockSec === undefined) !== (forever === undefined),
    'exactly one of blockSec (seconds) and forever: true is needed',
  );

export const statusQuery = z.strictObject({ hash, scope: scope.optional() });

export const blocksQuery = z.strictObject({
  scope: scope.optional(),
  cursor: z.string().max(1000).optional(),
  count: z
    .string()
    .regex(/^[1-9]\d{0,2}$/)
    .transform(Number)
    .refine(count => count <= MOST_BLOCKS)
    .optional(),
});

export const scopesQuery = z.strictObject({ recent: z.enum(['0', '1']).optional() });

function isDuration(sec: number): boolean {
  try {
    return milliseconds(sec, 'blockSec', { zero: false }) > 0;
  } catch {
    return false;
  }
}
