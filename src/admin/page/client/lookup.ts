import type { Standing, Status, SubjectInput } from './api.js';
import { ApiError } from './api.js';
import { block, reset, unblock, whomOf } from './actions.js';
import type { Whom } from './actions.js';
import { shortHash } from './desk.js';
import type { Desk } from './desk.js';
import { button, byId, h, setText, show } from './dom.js';
import { meter, words } from './standing.js';

type By = 'part' | 'parts' | 'hash';

const HINTS: Readonly<Record<By, readonly [label: string, hint: string]>> = {
  part: [
    'E-mail, address, account: one part of the key',
    'Finds everybody who is blocked with this part. Type it as the application does, e.g. in lower case.',
  ],
  parts: ['', 'Finds one subject, blocked or not. The parts are those that keyFn returns.'],
  hash: [
    '64 hex digits',
    'Finds one subject, blocked or not: the hash stands in the lists here and in your logs.',
  ],
};

/** The form that finds a subject, and how that one stands. */
export class Lookup {
  readonly #desk: Desk;
  readonly #form = byId('lookup-form', HTMLFormElement);
  readonly #one = byId('one', HTMLInputElement);
  readonly #many = byId('many', HTMLTextAreaElement);
  readonly #result = byId('lookup-result');
  #asked: SubjectInput | undefined;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#form.addEventListener('change', () => {
      this.#showFields();
    });
    this.#form.addEventListener('submit', event => {
      event.preventDefault();
      const subject = this.#input();
      if (subject !== undefined) void this.#ask(subject);
    });
    this.#showFields();
  }

  byHash(hash: string): void {
    this.#choose('hash');
    this.#one.value = hash;
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
    this.#asked = undefined;
    this.#form.reset();
    this.#say('');
    this.#result.replaceChildren();
    this.#showFields();
  }

  /** Asks once more, after something was changed. */
  async refresh(): Promise<void> {
    if (this.#asked !== undefined) await this.#ask(this.#asked, true);
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

  #input(): SubjectInput | undefined {
    const by = this.#by();
    if (by === 'parts') {
      const parts = this.#many.value.split('\n').flatMap(line => (line.trim() === '' ? [] : [line.trim()]));
      if (parts.length > 0) return { parts };
      this.#say('Type at least one part.');
      this.#many.focus();
      return undefined;
    }
    const text = this.#one.value.trim();
    if (by === 'hash' ? /^[\da-f]{64}$/i.test(text) : text !== '')
      return by === 'hash' ? { hash: text } : { part: text };
    this.#say(by === 'hash' ? 'A hash has 64 hex digits.' : 'Type the part that you know.');
    this.#one.focus();
    return undefined;
  }

  async #ask(subject: SubjectInput, again = false): Promise<void> {
    const { api } = this.#desk;
    this.#asked = subject;
    try {
      const status =
        'hash' in subject
          ? await api.get<Status>(`status?hash=${subject.hash.toLowerCase()}`)
          : await api.post<Status>('status', { subject });
      if (this.#asked === subject) this.#show(subject, status, again);
    } catch (error) {
      // Something else has been asked since.
      if (this.#asked !== subject) return;
      this.#result.replaceChildren();
      this.#say(error instanceof ApiError ? error.message : 'The answer could not be read.');
    }
  }

  #say(text: string): void {
    setText(byId('lookup-note'), text);
  }

  #show(subject: SubjectInput, { readings, more, unlisted }: Status, again: boolean): void {
    const people = bySubject(readings);
    const isPart = 'part' in subject;
    const missing =
      unlisted.length === 0 ? '' : ` The store of ${unlisted.join(', ')} cannot be searched by one part.`;
    if (isPart) {
      const found =
        people.size === 0
          ? 'Nobody is'
          : `${String(people.size)} ${people.size === 1 ? 'subject is' : 'subjects are'}`;
      this.#say(`${found} blocked with this part${more ? ', and there are more' : ''}.${missing}`);
    } else {
      const stands = readings.filter(({ block: standing }) => standing !== null).length;
      this.#say(
        stands === 0 ? 'Not blocked.' : `Blocked in ${String(stands)} of ${String(readings.length)} scopes.`,
      );
    }
    const children: HTMLElement[] = [];
    if (isPart && people.size === 0) {
      children.push(
        h(
          'p',
          { class: 'hint' },
          'Somebody may be refused without a block, when a counter is used up: look up the whole key, all its parts. ',
          button('This is the whole key', 'link', () => {
            this.#choose('parts');
            this.#many.value = subject.part;
            void this.#ask({ parts: [subject.part] });
          }),
        ),
      );
    }
    if (isPart && people.size > 1 && this.#desk.mayWrite) {
      const all: Whom = { subject, name: 'everybody with this part' };
      children.push(
        h(
          'div',
          { class: 'row' },
          button(`Unblock all ${String(people.size)}`, 'primary', () => void unblock(this.#desk, all)),
          button(`Reset all ${String(people.size)}`, 'quiet', () => void reset(this.#desk, all)),
        ),
      );
    }
    for (const [hash, list] of people) children.push(this.#person(hash, list));
    const hadFocus = this.#result.contains(document.activeElement);
    this.#result.replaceChildren(...children);
    if (again && hadFocus) byId('lookup-title').focus();
  }

  #person(hash: string, standings: readonly Standing[]): HTMLElement {
    const whom = whomOf({ subjectHash: hash });
    const person = h(
      'div',
      { class: 'person' },
      h('h3', {}, 'Subject ', h('span', { class: 'hash', title: hash }, shortHash(hash))),
    );
    if (this.#desk.mayWrite && standings.length > 1) {
      person.append(
        h(
          'div',
          { class: 'row' },
          button('Unblock everywhere', 'primary small', () => void unblock(this.#desk, whom)),
          button('Reset everywhere', 'quiet small', () => void reset(this.#desk, whom)),
        ),
      );
    }
    person.append(...standings.map(standing => this.#standing(standing)));
    return person;
  }

  #standing(standing: Standing): HTMLElement {
    const { scope, subjectHash, block: blocked, reading, mode } = standing;
    const element = h(
      'div',
      { class: blocked === null ? 'standing' : 'standing blocked' },
      h('h4', {}, scope, ' ', mode === 'enforce' ? undefined : h('span', { class: 'tag' }, mode)),
      h('p', {}, ...words(standing)),
    );
    // A block hides the counter: nothing is left then, whatever was used.
    if (reading !== null && reading.limit > 0 && blocked === null)
      element.append(meter(reading.limit - reading.remaining, reading.limit, scope));
    if (this.#desk.mayWrite) {
      const whom = { ...whomOf({ subjectHash }), scope };
      const actions = h('div', { class: 'row' });
      if (blocked !== null)
        actions.append(button('Unblock', 'primary small', () => void unblock(this.#desk, whom)));
      if (mode !== 'off')
        actions.append(button('Block…', 'quiet small', () => void block(this.#desk, whom, mode)));
      if (blocked !== null || standing.counters.length > 0) {
        actions.append(button('Reset', 'quiet small', () => void reset(this.#desk, whom)));
      }
      for (const one of actions.querySelectorAll('button')) {
        one.setAttribute('aria-label', `${one.textContent} ${shortHash(subjectHash)} in ${scope}`);
      }
      element.append(actions);
    }
    return element;
  }
}

function bySubject(readings: readonly Standing[]): Map<string, Standing[]> {
  const people = new Map<string, Standing[]>();
  for (const standing of readings) {
    const list = people.get(standing.subjectHash);
    if (list === undefined) people.set(standing.subjectHash, [standing]);
    else list.push(standing);
  }
  return people;
}
