// Which module goes into which file of dist, and which files wait until they are needed.
import { fileURLToPath } from 'node:url';

const source = path => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));

/**
 * Modules that the first request does not need: a file each, with what only they import, read when it is first used. The
 * sources import them like any other; the build alone makes the import lazy.
 *
 * Nothing that an answer depends on belongs here. Under an attack a process may have no file descriptor left, and a
 * `require` throws then: whoever uses one of these while a request waits has to be ready for that.
 */
const LAZY = {
  'backend-store': source('stores/backend-store.ts'),
  // A limiter that will settle reads it when it is made.
  settle: source('express/settle.ts'),
  'warning-texts': source('core/warning-texts.ts'),
};

export const lazyFiles = Object.keys(LAZY).map(name => `${name}.cjs`);

/**
 * Rollup's `manualChunks`. What `limitkeeper` consists of is one file, `limitkeeper.cjs`, of which the other entries use
 * what they need: more files would take longer to open than they take to parse.
 */
export function chunkOf(id, { getModuleInfo }) {
  const lazy = Object.keys(LAZY).find(name => LAZY[name] === id);
  if (lazy !== undefined) return lazy;
  if (id.includes('/node_modules/zod/')) return 'zod';
  return mainModules(getModuleInfo).has(id) ? 'limitkeeper' : null;
}

let main;

function mainModules(getModuleInfo) {
  if (main !== undefined) return main;
  main = new Set();
  const visit = id => {
    const info = getModuleInfo(id);
    if (main.has(id) || info === null || info.isExternal || Object.values(LAZY).includes(id)) return;
    main.add(id);
    info.importedIds.forEach(visit);
  };
  visit(source('index.ts'));
  return main;
}
