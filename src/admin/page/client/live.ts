import { ApiError } from './api.js';
import { hashButton } from './desk.js';
import type { Desk } from './desk.js';
import { byId, h, nextFrame, setText } from './dom.js';
import { serverNow, timeElement } from './time.js';

interface LiveEvent {
  readonly type: string;
  readonly at: number;
  readonly scope?: string | null;
  readonly scopes?: readonly string[];
  readonly subjectHash?: string | null;
  readonly reason?: string;
  readonly manual?: boolean;
  readonly code?: string;
  readonly count?: number;
}

const MOST_SHOWN = 60;
/** So long it is said that events came too fast: what is over for longer is no news. */
const TOO_FAST_MS = 10_000;
const WAITS_MS = [1000, 2000, 5000, 10_000];

const KINDS: Readonly<Record<string, readonly [words: string, mood: '' | 'bad' | 'good' | 'would']>> = {
  refused: ['refused', ''],
  'shadow-refused': ['would be refused', 'would'],
  blocked: ['blocked', 'bad'],
  unblocked: ['unblocked', 'good'],
  reset: ['reset', 'good'],
  'store-error': ['store error', 'bad'],
  degraded: ['store away', 'bad'],
  recovered: ['store back', 'good'],
  // Of this page's own, not of the stream.
  gap: ['a gap', 'bad'],
};

const NOTHING_YET =
  'Nothing has happened yet: refusals, blocks and store errors of this process appear here.';

/** Reads the stream of events and lists them, newest first. */
export class Live {
  readonly #desk: Desk;
  readonly #onBlock: () => void;
  readonly #list = byId('live-list');
  #abort = new AbortController();
  #paused = false;
  #missed = 0;
  #missedAt = 0;
  /** What came since the list was drawn, the newest last. */
  readonly #waiting: LiveEvent[] = [];
  #drawing = false;
  #newest:
    | { readonly same: string; readonly time: HTMLElement; readonly count: HTMLElement; times: number }
    | undefined;

  /** @param onBlock somebody was blocked or freed: the table can be asked for at once. */
  constructor(desk: Desk, onBlock: () => void) {
    this.#desk = desk;
    this.#onBlock = onBlock;
    const pause = byId('live-pause');
    pause.addEventListener('click', () => {
      this.#paused = !this.#paused;
      pause.setAttribute('aria-pressed', String(this.#paused));
      setText(pause, this.#paused ? 'Go on' : 'Pause');
    });
    this.#note(NOTHING_YET);
  }

  /** Reads until {@link end}, over every break. */
  async run(): Promise<void> {
    const { signal } = (this.#abort = new AbortController());
    let failures = 0;
    let broke = false;
    while (!isOver(signal)) {
      try {
        const stream = await this.#desk.api.stream('events', signal);
        failures = 0;
        if (broke) this.#mendedGap();
        broke = true;
        await this.#read(stream);
      } catch (error) {
        // The door is shut again; the part that polls says so.
        if (error instanceof ApiError && error.status === 403) return;
      }
      if (isOver(signal)) return;
      this.#note('The live stream broke off; it is opened again.');
      const wait = WAITS_MS[Math.min(failures, WAITS_MS.length - 1)];
      failures += 1;
      await new Promise(resolve => setTimeout(resolve, wait));
    }
  }

  end(): void {
    this.#abort.abort();
  }

  /** Server-sent events: blocks of lines apart by an empty line; a line `data:` has the JSON. */
  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    const reader = stream.getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      const events = blocks.flatMap(block => {
        const data = /^data: (.*)$/m.exec(block)?.[1];
        return data === undefined ? [] : [JSON.parse(data) as LiveEvent];
      });
      if (events.length > 0) this.#show(events);
    }
  }

  /** It listens again: the note of the break is over, and the list itself says where events are missing. */
  #mendedGap(): void {
    this.#note(this.#list.children.length === 0 ? NOTHING_YET : '');
    this.#take([
      { type: 'gap', at: serverNow(), scope: 'the stream broke off; what happened until now is not listed' },
    ]);
  }

  #show(events: readonly LiveEvent[]): void {
    if (events.some(({ type }) => type === 'blocked' || type === 'unblocked' || type === 'reset'))
      this.#onBlock();
    const missed = events.reduce((sum, { count = 0 }) => sum + count, 0);
    const now = Date.now();
    if (now - this.#missedAt > TOO_FAST_MS) this.#missed = 0;
    if (missed > 0) {
      this.#missed += missed;
      this.#missedAt = now;
      setTimeout(() => {
        if (Date.now() - this.#missedAt >= TOO_FAST_MS) this.#note('');
      }, TOO_FAST_MS + 1);
    }
    this.#note(
      this.#missed === 0
        ? ''
        : `${this.#missed.toLocaleString()} events came too fast to list just now; the counts have them all.`,
    );
    this.#take(events.filter(({ count }) => count === undefined));
  }

  /** However many come, the list is drawn once for a frame, and only what it has room for. */
  #take(events: readonly LiveEvent[]): void {
    if (this.#paused) return;
    this.#waiting.push(...events);
    this.#waiting.splice(0, this.#waiting.length - MOST_SHOWN);
    if (this.#drawing) return;
    this.#drawing = true;
    void nextFrame().then(() => {
      this.#drawing = false;
      for (const event of this.#waiting.splice(0)) this.#add(event);
      while (this.#list.children.length > MOST_SHOWN) this.#list.lastElementChild?.remove();
    });
  }

  /** The same thing again, as in an attack, is counted in its line and makes no new one. */
  #add(event: LiveEvent): void {
    const { type, at, scope, subjectHash, reason, code } = event;
    const same = [type, scope, subjectHash, reason, code].join(' ');
    if (this.#newest?.same === same) {
      this.#newest.times += 1;
      this.#newest.time.replaceChildren(timeElement(at));
      setText(this.#newest.count, ` ${this.#newest.times.toLocaleString()} times`);
      return;
    }
    const time = h('span', {}, timeElement(at));
    const count = h('b');
    this.#newest = { same, time, count, times: 1 };
    this.#list.prepend(this.#item(event, time, count));
  }

  #item(
    { type, scope, scopes, subjectHash, reason, manual, code }: LiveEvent,
    time: HTMLElement,
    count: HTMLElement,
  ): HTMLElement {
    const [words, mood] = KINDS[type] ?? [type, ''];
    const detail = code ?? (manual === true ? 'by hand' : reason === 'blocked' ? 'while blocked' : '');
    const where = scope ?? scopes?.join(', ') ?? '';
    return h(
      'li',
      {},
      time,
      h('span', { class: `kind ${mood}` }, words),
      h('span', { class: 'where' }, where, detail === '' ? '' : ` (${detail})`, count),
      typeof subjectHash === 'string' ? hashButton(this.#desk, subjectHash) : undefined,
    );
  }

  #note(text: string): void {
    setText(byId('live-note'), text);
  }
}

/** A call, for what it answers changes while something is waited for. */
const isOver = (signal: AbortSignal): boolean => signal.aborted;
