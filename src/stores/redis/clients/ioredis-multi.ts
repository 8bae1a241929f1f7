/** The methods that begin and end a transaction by hand. */
interface Transacting {
  multi?: (...args: unknown[]) => unknown;
  exec?: (...args: unknown[]) => unknown;
  discard?: (...args: unknown[]) => unknown;
}

type Name = keyof Transacting;

/**
 * Tells whether the application is inside a `MULTI` that it began by hand, `multi({ pipeline: false })`. A decision sent then
 * would become a part of that transaction: nobody would answer it, and `EXEC` would answer one result too many.
 *
 * The client tells nobody of it, neither by an event nor by a property, so its three methods are watched. What the client sends
 * as a pipeline of its own (`multi().….exec()`) is written in one piece and needs no care.
 */
export class ManualMulti {
  #isOpen = false;
  readonly #undo: (() => void)[] = [];

  constructor(client: object & { readonly status: string }) {
    const target = client as Transacting;
    this.#watch(target, 'multi', args => {
      if (client.status === 'ready' && args.some(isByHand)) this.#isOpen = true;
    });
    // Sent now, though answered later: whatever is sent from now on comes behind it.
    for (const name of ['exec', 'discard'] as const)
      this.#watch(target, name, () => {
        this.#isOpen = false;
      });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A transaction ends with its connection. */
  lost(): void {
    this.#isOpen = false;
  }

  off(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }

  #watch(client: Transacting, name: Name, seen: (args: readonly unknown[]) => void): void {
    const method = client[name];
    if (typeof method !== 'function') return;
    const wasOwn = Object.hasOwn(client, name);
    const watched = function (this: unknown, ...args: unknown[]): unknown {
      const result = method.apply(this, args);
      seen(args);
      return result;
    };
    // A frozen client cannot be watched; the reply tells of the transaction then, too late for its EXEC.
    if (!Reflect.set(client, name, watched)) return;
    this.#undo.push(() => {
      // Somebody has wrapped it since: what they hold goes on to work.
      if (client[name] !== watched) return;
      if (wasOwn) client[name] = method;
      else Reflect.deleteProperty(client, name);
    });
  }
}

const isByHand = (arg: unknown): boolean =>
  typeof arg === 'object' && arg !== null && (arg as { pipeline?: unknown }).pipeline === false;
