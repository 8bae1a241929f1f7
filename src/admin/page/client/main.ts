import { Api, ApiError } from './api.js';
import type { Overview } from './api.js';
import { Blocks } from './blocks.js';
import type { Loaded } from './blocks.js';
import type { Desk } from './desk.js';
import { cancel } from './dialog.js';
import { byId, nextFrame, setText, show } from './dom.js';
import { Live } from './live.js';
import { Lookup } from './lookup.js';
import { Names } from './names.js';
import { learnTime } from './time.js';
import { Traffic } from './traffic.js';

const POLL_MS = 1500;
const SLOWEST_POLL_MS = 10_000;
const SHORTEST_PAUSE_MS = 400;
/** What a header can carry. */
const SENDABLE = /^[\x20-\x7e]+$/;

const entrance = document.documentElement.dataset['entrance'];

/** Shows the door again, with a word of why. The key that was used is gone with the desk, and so is what it showed. */
function shut(why: string): void {
  desk.api = new Api(undefined);
  cancel();
  desk.names.clear();
  lookup.clear();
  blocks.clear();
  show(byId('desk'), false);
  show(byId('door'), true);
  show(byId('leave'), false);
  show(byId('connection'), false);
  show(byId('key-form'), entrance === 'key');
  show(byId('no-session'), entrance !== 'key');
  setText(byId(entrance === 'key' ? 'key-error' : 'session-error'), why);
  if (entrance === 'key') byId('key').focus();
}

/** Opens the desk if the key does: asks for the rules with it, and goes on asking. */
async function open(key: string | undefined): Promise<void> {
  const api = new Api(key);
  let overview: Overview;
  try {
    overview = await api.get<Overview>('scopes?recent=1');
  } catch (error) {
    shut(error instanceof ApiError ? error.message : 'The answer could not be read.');
    return;
  }
  setText(byId('key-error'), '');
  show(byId('door'), false);
  show(byId('desk'), true);
  show(byId('connection'), true);
  show(byId('leave'), entrance === 'key');
  await work(api, overview);
}

let wake: () => void = () => undefined;
const desk: Desk = {
  api: new Api(undefined),
  mayWrite: false,
  names: new Names(),
  changed: () => {
    wake();
    void lookup.refresh(true);
  },
  lookUp: hash => {
    lookup.byHash(hash);
  },
  showScope: scope => {
    traffic.only(scope);
    blocks.only(scope);
  },
};
const traffic = new Traffic(desk);
const lookup = new Lookup(desk);
const blocks = new Blocks(desk);
const live = new Live(desk, () => {
  wake();
});

/** The page at work: asks, listens and shows, until the door is shut. */
async function work(api: Api, first: Overview): Promise<void> {
  desk.api = api;
  desk.mayWrite = first.access === 'all';
  lookup.restrict();
  blocks.clear();
  learnTime(first.at);
  traffic.show(first);
  blocks.offerScopes(traffic.scopes);
  // What happens comes first: on a small screen the search lies below it, and is not scrolled to.
  byId(desk.mayWrite ? 'one' : 'lookup-title').focus({ preventScroll: true });
  void live.run();

  let lastAnswer = Date.now();
  let failures = 0;
  for (;;) {
    try {
      const listing = blocks.load();
      // Awaited below, when the overview has been shown.
      listing.catch(() => undefined);
      const overview = await api.get<Overview>('scopes?recent=1');
      learnTime(overview.at);
      // A frame for each part of the page, so that none of them keeps the others waiting.
      await nextFrame();
      traffic.show(overview);
      blocks.offerScopes(traffic.scopes);
      failures = 0;
      lastAnswer = Date.now();
      await listed(listing);
    } catch (error) {
      failures += 1;
      if (error instanceof ApiError && error.status === 403) {
        live.end();
        shut(
          entrance === 'key'
            ? 'The key is no longer accepted. Type it again, or another one.'
            : error.message,
        );
        return;
      }
      const why = error instanceof ApiError ? error.message : 'The answer could not be read.';
      const since = Math.round((Date.now() - lastAnswer) / 1000);
      connected(false, `Reconnecting. ${why} What you see is ${String(since)} s old.`);
    }
    await pause(Math.min(POLL_MS * 2 ** Math.min(failures, 3), SLOWEST_POLL_MS));
    await visible();
  }
}

/** Shows the blocks, and whom was looked up. Where a store does not answer they stay as they were, while the rules go on. */
async function listed(listing: Promise<Loaded>): Promise<void> {
  try {
    const loaded = await listing;
    await nextFrame();
    blocks.show(loaded);
    // Another operator, or time itself, may have changed how they stand.
    await lookup.refresh(isAway());
    connected(true, desk.mayWrite ? 'Live' : 'Live, read-only');
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 503) throw error;
    connected(false, `Who is blocked cannot be read. ${error.message}`);
  }
}

/** Waits, or until something wakes it: an event, or what the reader did. An attack wakes it often, and is not followed. */
async function pause(ms: number): Promise<void> {
  const start = Date.now();
  await new Promise<void>(resolve => {
    let timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      timer = setTimeout(resolve, Math.max(0, start + SHORTEST_PAUSE_MS - Date.now()));
    };
  });
}

function connected(isConnected: boolean, text: string): void {
  const line = byId('connection');
  line.classList.toggle('away', !isConnected);
  setText(line, text);
  blocks.stale(!isConnected);
  lookup.stale(!isConnected);
}

const isAway = (): boolean => byId('connection').classList.contains('away');

/** A tab that nobody looks at asks for nothing. */
async function visible(): Promise<void> {
  if (!document.hidden) return;
  await new Promise<void>(resolve => {
    const check = (): void => {
      if (document.hidden) return;
      document.removeEventListener('visibilitychange', check);
      resolve();
    };
    document.addEventListener('visibilitychange', check);
  });
}

byId('key-form').addEventListener('submit', event => {
  event.preventDefault();
  const input = byId('key', HTMLInputElement);
  const key = input.value.trim();
  input.value = '';
  if (SENDABLE.test(key)) void open(key);
  else shut('A key is made of letters, digits and signs without accents.');
});
byId('leave').addEventListener('click', () => {
  // Everything of this visit lives in this document: a new one knows nothing.
  location.reload();
});
byId('try-again').addEventListener('click', () => void open(undefined));

if (entrance === 'key') byId('key').focus();
else void open(undefined);
