// For running sources with tsx: `tsx --import ./scripts/lua-loader.js file.ts` imports a .lua or .html file as its text,
// like the build.
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { assemble } from './assemble.cjs';

if (isMainThread) register(import.meta.url);

export async function load(url, context, nextLoad) {
  const { pathname } = new URL(url);
  if (!/\.(?:lua|html)$/.test(pathname)) return nextLoad(url, context);
  const { text } = assemble(fileURLToPath(url.split('?')[0]));
  return { format: 'module', source: `export default ${JSON.stringify(text)};`, shortCircuit: true };
}
