import type { z } from 'zod';
import { refuse } from './reply.js';

/**
 * What came, proven by its schema.
 *
 * @throws Refusal 422 that names every wrong field. It never repeats what came: that may be somebody's address.
 */
export function parse<T extends z.ZodType>(schema: T, input: unknown): z.output<T> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const errors = result.error.issues.map(({ path, message }) => ({
    field: path.map(String).join('.'),
    detail: message,
  }));
  const [first] = errors;
  const where = first === undefined || first.field === '' ? '' : `${first.field}: `;
  return refuse(422, `${where}${first?.detail ?? 'The input is invalid.'}`, { errors });
}

/** A query as an object, for a schema. A parameter given twice is none that anybody meant. */
export function queryObject(query: URLSearchParams): Readonly<Record<string, string>> {
  const names = new Set<string>();
  for (const name of query.keys()) {
    if (names.has(name)) refuse(422, 'A query parameter was given twice.', { errors: [{ field: name }] });
    names.add(name);
  }
  return Object.fromEntries(query);
}
