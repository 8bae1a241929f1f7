// What was measured, by section: one that is run alone renews its own part.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { SECTIONS } from '../options.mjs';

const folder = new URL('../results/', import.meta.url);
/** In the repository. */
const kept = new URL('latest.json', folder);
/** Of whatever was run last. */
const last = new URL('last.json', folder);

export async function readResults() {
  try {
    return JSON.parse(await readFile(kept, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return {};
    throw error;
  }
}

export const addResult = (results, name, result) =>
  Object.fromEntries(
    SECTIONS.flatMap(id => (id === name ? [[id, result]] : id in results ? [[id, results[id]]] : [])),
  );

export async function writeResults(results, keep) {
  await mkdir(folder, { recursive: true });
  const text = `${JSON.stringify(rounded(results), null, 2)}\n`;
  await writeFile(keep ? kept : last, text);
}

/** To four digits: more are noise, also in a diff. */
function rounded(value) {
  if (typeof value === 'number') return Number.isInteger(value) ? value : Number(value.toPrecision(4));
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, rounded(part)]));
}
