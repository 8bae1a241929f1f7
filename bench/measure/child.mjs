// Work in a process of its own, where no other contender has warmed, filled or shaped anything.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('child-main.mjs', import.meta.url));

/**
 * Calls what a module exports by default, and resolves with what that resolves with: both as JSON.
 *
 * @param {URL} url of the module
 * @param {unknown} argument
 * @param {string[]} [flags] of Node
 */
export async function inChild(url, argument, flags = []) {
  const child = fork(main, [url.href, JSON.stringify(argument)], {
    execArgv: flags,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('error', reject);
    child.once('exit', code => reject(new Error(`${url.pathname.split('/').at(-1)} ended with ${code}.`)));
  });
}
