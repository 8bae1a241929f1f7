import type { Api } from './api.js';
import { ApiError } from './api.js';
import { button, byId, setText } from './dom.js';
import { shortHash } from './names.js';
import type { Names } from './names.js';

const TOAST_MS = 6000;

/** What every part of the page shares: the routes, what the reader may do, and how to tell them what was done. */
export interface Desk {
  /** The routes, with the key of this visit. */
  api: Api;
  /** A read-only key opens no route that changes something, or that takes a subject in plain. */
  mayWrite: boolean;
  readonly names: Names;
  /** Something was changed here: what is shown should be asked for again. */
  readonly changed: () => void;
  /** Looks a subject up by its hash. */
  readonly lookUp: (hash: string) => void;
  /** Shows one scope in the chart and in the list of blocks. */
  readonly showScope: (scope: string) => void;
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

/** A subject in a list: its digits, which look it up. */
export function hashButton(desk: Desk, hash: string): HTMLButtonElement {
  desk.names.saw(hash);
  const element = button(shortHash(hash), 'link hash', () => {
    desk.lookUp(hash);
  });
  element.title = `Look up ${hash}`;
  element.setAttribute('aria-label', `Look up subject ${shortHash(hash)}`);
  return element;
}
