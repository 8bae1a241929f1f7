import type { Status, SubjectInput } from './api.js';
import { ApiError } from './api.js';
import type { Desk } from './desk.js';
import { byId, setText, show } from './dom.js';
import { LookupResult } from './lookup-result.js';

type By = 'part' | 'parts' | 'hash';

const HINTS: Readonly<Record<By, readonly [label: string, hint: string]>> = {
  part: [
    'E-mail, address, account: one part of the key',
    'Finds everybody who is blocked with this part. Type it as the application does, e.g. in lower case.',
  ],
  parts: ['', 'Finds one subject, blocked or not. The parts are those that keyFn returns.'],
  hash: [
    'Its 64 hex digits, or the first 12 that the lists show',
    'The whole hash finds one subject, blocked or not; the first digits whoever is blocked or was listed here.',
  ],
};

/** What is shown is asked for again with every round, but for no more than one part in this many of the time. */
const REST = 10;

/** The form that finds a subject. How that one stands is shown for as long as it is true. */
export class Lookup {
  readonly #desk: Desk;
  readonly #form = byId('lookup-form', HTMLFormElement);
  readonly #one = byId('one', HTMLInputElement);
  readonly #many = byId('many', HTMLTextAreaElement);
  readonly #result: LookupResult;
  #asked: SubjectInput | undefined;
  #refreshAt = 0;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#result = new LookupResult(desk, part => {
      this.#choose('parts');
      this.#many.value = part;
      void this.#ask({ parts: [part] });
    });
    this.#form.addEventListener('change', () => {
      this.#showFields();
    });
    this.#form.addEventListener('submit', event => {
      event.preventDefault();
      const subject = this.#input();
      // What was found before is no answer to what was typed now.
      this.#forget();
      if (typeof subject === 'string') this.#say(subject);
      else void this.#ask(subject);
    });
    this.#showFields();
  }

  byHash(hash: string): void {
    this.#choose('hash');
    this.#one.value = hash;
    this.#forget();
    void this.#ask({ hash });
    byId('lookup-title').scrollIntoView({ block: 'nearest' });
  }

  /** A read-only key opens GET routes: those name a subject by its hash, never in plain. */
  restrict(): void {
    for (const radio of this.#form.querySelectorAll('input')) {
      if (radio.type === 'radio') radio.disabled = !this.#desk.mayWrite && radio.value !== 'hash';
    }
    if (!this.#desk.mayWrite && this.#by() !== 'hash') this.#choose('hash');
    this.#showFields();
  }

  /** For another visitor: nothing that was typed or found is left. */
  clear(): void {
    this.#form.reset();
    this.#forget();
    this.#showFields();
  }

  /** Asks once more: something was changed (`now`), here or by somebody else. */
  async refresh(now = false): Promise<void> {
    if (this.#asked !== undefined && (now || Date.now() >= this.#refreshAt))
      await this.#ask(this.#asked, true);
  }

  /** What stands there is old, and nothing to act on. */
  stale(isStale: boolean): void {
    this.#result.stale(isStale);
  }

  #by(): By {
    return new FormData(this.#form).get('by') as By;
  }

  #choose(by: By): void {
    for (const radio of this.#form.querySelectorAll('input')) {
      if (radio.type === 'radio') radio.checked = radio.value === by;
    }
    this.#showFields();
  }

  #showFields(): void {
    const by = this.#by();
    const [label, hint] = HINTS[by];
    show(byId('one-line'), by !== 'parts');
    show(byId('many-lines'), by === 'parts');
    setText(byId('one-label'), label);
    setText(
      byId('by-hint'),
      this.#desk.mayWrite ? hint : `${hint} A read-only key finds subjects by their hash alone.`,
    );
  }

  /** Whom the form names; or, where it names nobody, what is missing. */
  #input(): SubjectInput | string {
    const by = this.#by();
    if (by === 'parts') {
      const parts = this.#many.value.split('\n').flatMap(line => (line.trim() === '' ? [] : [line.trim()]));
      if (parts.length > 0) return { parts };
      this.#many.focus();
      return 'Type at least one part.';
    }
    const text = this.#one.value.trim();
    if (by === 'part' && text !== '') return { part: text };
    // Copied from a list it may bring the sign with which that cuts it short.
    const digits = text.replace(/…$/, '').toLowerCase();
    if (by === 'hash' && /^[\da-f]{12,64}$/.test(digits)) {
      return { hash: this.#desk.names.whole(digits) ?? digits };
    }
    this.#one.focus();
    return by === 'hash' ? 'A hash has 64 hex digits; the first 12 will do.' : 'Type the part that you know.';
  }

  async #ask(subject: SubjectInput, again = false): Promise<void> {
    const { api } = this.#desk;
    this.#asked = subject;
    const start = Date.now();
    try {
      const status =
        'hash' in subject
          ? await api.get<Status>(`status?hash=${subject.hash}`)
          : await api.post<Status>('status', { subject });
      // Or else something else has been asked since.
      if (this.#asked === subject) this.#say(this.#result.show(subject, status, again));
    } catch (error) {
      if (this.#asked !== subject) return;
      this.#result.clear();
      this.#say(error instanceof ApiError ? error.message : 'The answer could not be read.');
    } finally {
      this.#refreshAt = Date.now() + (Date.now() - start) * REST;
    }
  }

  #forget(): void {
    this.#asked = undefined;
    this.#result.clear();
    this.#say('');
  }

  #say(text: string): void {
    setText(byId('lookup-note'), text);
  }
}
