import type { Api } from './api.js';
import { ApiError } from './api.js';
import { byId, setText } from './dom.js';

const TOAST_MS = 6000;

/** What every part of the page shares: the routes, what the reader may do, and how to tell him what was done. */
export interface Desk {
  /** The routes, with the key of this visit. */
  api: Api;
  /** A read-only key opens no route that changes something, or that takes a subject in plain. */
  mayWrite: boolean;
  /** Something was changed here: what is shown should be asked for again. */
  readonly changed: () => void;
  /** Looks a subject up by its hash. */
  readonly lookUp: (hash: string) => void;
}

let toastTimer: ReturnType<typeof setTimeout> | undefined;

export function toast(text: string): void {
  setText(byId('toast'), text);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => {
    setText(byId('toast'), '');
  }, TOAST_MS);
}

/** Does something, and tells what came of it. */
export async function act(desk: Desk, work: () => Promise<string>): Promise<void> {
  try {
    toast(await work());
  } catch (error) {
    toast(error instanceof ApiError ? error.message : 'Something in this page went wrong. Reload it.');
  }
  desk.changed();
}

/** The first digits of a hash tell people apart well enough; the whole one is in the title. */
export function shortHash(hash: string): string {
  return `${hash.slice(0, 12)}…`;
}
