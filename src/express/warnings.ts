import { warnOnce } from '../core/warn-once.js';

export { ProxyWatch } from './proxy-watch.js';
export { warnOnce } from '../core/warn-once.js';

/** What tells a process of which many run at once: PM2, AWS Lambda, Vercel, Netlify, Cloud Run and Functions, Azure Functions. */
const MANY_PROCESSES = [
  'NODE_APP_INSTANCE',
  'pm_id',
  'AWS_LAMBDA_FUNCTION_NAME',
  'VERCEL',
  'NETLIFY',
  'K_SERVICE',
  'FUNCTION_TARGET',
  'FUNCTIONS_WORKER_RUNTIME',
];

/** Warns where a store counts in this process alone although the process seems to be one of several. Once, at construction. */
export function warnAboutStore(store: { readonly perProcess?: boolean }): void {
  if (store.perProcess !== true) return;
  if (MANY_PROCESSES.some(name => (process.env[name] ?? '') !== '')) {
    warnOnce('LIMITKEEPER_MEMORY_STORE_PER_PROCESS');
  } else if (typeof process.send === 'function') {
    // node:cluster takes 5 ms to load, so only a process with a parent to talk to asks it. (Its environment variable
    // NODE_UNIQUE_ID tells nothing: Node deletes it before the program runs.)
    void import('node:cluster').then(({ default: cluster }) => {
      if (cluster.isWorker) warnOnce('LIMITKEEPER_MEMORY_STORE_PER_PROCESS');
    });
  }
}

/** One instance may meet a request in its first moments by accident, as in a unit test; a handler makes one after another. */
const SUSPICIOUS = 2;
let usedAtOnce = 0;

/**
 * Notices instances that are made by a request handler: they meet a request in the very run of code that made them, where
 * an instance that was made at start has long left its own. One for each instance, made with it.
 */
export class CreationWatch {
  #fresh = true;

  constructor() {
    // A promise, and no timer or queueMicrotask: those stand still under the fake timers of tests.
    void Promise.resolve().then(() => {
      this.#fresh = false;
    });
  }

  /** Call it first thing when a request comes. */
  observe(): void {
    if (!this.#fresh) return;
    this.#fresh = false;
    usedAtOnce += 1;
    if (usedAtOnce >= SUSPICIOUS) warnOnce('LIMITKEEPER_CREATED_IN_HANDLER');
  }
}
