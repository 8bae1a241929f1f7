// For running sources with tsx: `tsx --import ./scripts/lua-loader.js file.ts` imports a .lua file as its text, like the build.
import { readFile } from 'node:fs/promises';
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

if (isMainThread) register(import.meta.url);

export async function load(url, context, nextLoad) {
  const { pathname } = new URL(url);
  if (!pathname.endsWith('.lua')) return nextLoad(url, context);
  const text = await readFile(new URL(url.split('?')[0]), 'utf8');
  return { format: 'module', source: `export default ${JSON.stringify(text)};`, shortCircuit: true };
}
