import type * as z from 'zod/mini';
import { refuse } from './reply.js';

/** What a field that is wrong is called, where nothing more exact can be said without repeating what came. */
type Whole = 'body' | 'query';

/**
 * What came, proven by its schema.
 *
 * @throws Refusal 422 that names the first wrong field in `field` and every one in `errors`. It never repeats what came, not
 * even the name of an unknown field: that may be somebody's address.
 */
export function parse<T extends z.ZodMiniType>(
  schema: T,
  input: unknown,
  whole: Whole = 'body',
): z.output<T> {
  const result = schema.safeParse(input, { error: ownWords });
  if (result.success) return result.data;
  const errors = result.error.issues.map(({ path, message }) => ({
    field: path.length === 0 ? whole : path.map(String).join('.'),
    detail: message,
  }));
  return invalid(errors);
}

/** The same of a query. A parameter given twice is none that anybody meant. */
export function parseQuery<T extends z.ZodMiniObject>(schema: T, query: URLSearchParams): z.output<T> {
  const names = new Set<string>();
  for (const name of query.keys()) {
    if (names.has(name)) {
      const field = Object.hasOwn(schema.shape, name) ? name : 'query';
      invalid([{ field, detail: 'has a parameter that was given twice' }]);
    }
    names.add(name);
  }
  return parse(schema, Object.fromEntries(query), 'query');
}

/** @throws Refusal 422 always, in the one form that it has. */
export function invalid(errors: readonly { readonly field: string; readonly detail: string }[]): never {
  const [first = { field: 'body', detail: 'is not valid' }] = errors;
  return refuse(422, `${first.field}: ${first.detail}.`, { field: first.field, errors });
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  array: 'a list',
  object: 'an object',
};

/** For whatever a schema has no words of its own. Those of the library change with its versions, and may repeat what came. */
function ownWords(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type') {
    return issue.input === undefined ? 'is missing' : `must be ${KINDS[issue.expected] ?? 'something else'}`;
  }
  if (issue.code === 'too_small') return issue.minimum === 1 ? 'must not be empty' : 'is too small';
  return issue.code === 'too_big' ? `is too long: at most ${String(issue.maximum)}` : 'is not valid';
}
