import { cure, isUsedUp, reset, unblock } from './actions.js';
import type { Whom } from './actions.js';
import type { Standing, Status, SubjectInput } from './api.js';
import type { Desk } from './desk.js';
import { button, byId, freeze, h, KeyedList, setText, show } from './dom.js';
import { personRow } from './person.js';
import type { Person } from './person.js';

/** People drawn at once: a part that thousands share is no reason to draw them all. */
const PAGE = 25;

/** Who was found, how they stand, and what can be done. It is kept up to date without moving what has the focus. */
export class LookupResult {
  readonly #desk: Desk;
  readonly #root = byId('lookup-result');
  readonly #people: KeyedList<Person>;
  readonly #unblockAll = button('', 'quiet', () => void (this.#all && unblock(this.#desk, this.#all)));
  readonly #resetAll = button('', 'quiet', () => void (this.#all && reset(this.#desk, this.#all)));
  readonly #allRow = h('div', { class: 'row' });
  readonly #hint: HTMLElement;
  readonly #more = button('Show more', 'quiet', () => {
    this.#shown += PAGE;
    this.#draw();
  });
  #all: Whom | undefined;
  #part = '';
  #found: readonly Person[] = [];
  #shown = PAGE;

  /** @param wholeKey looks up a part as what it may be as well: a key of its own. */
  constructor(desk: Desk, wholeKey: (part: string) => void) {
    this.#desk = desk;
    this.#hint = h(
      'p',
      { class: 'hint', hidden: '' },
      'Somebody may be refused without a block, when a counter is used up: look up the whole key, all its parts. ',
      button('This is the whole key', 'link', () => {
        wholeKey(this.#part);
      }),
    );
    const list = h('div');
    this.#people = new KeyedList(
      list,
      ({ hash }) => hash,
      person => personRow(desk, person),
    );
    this.#root.replaceChildren(this.#hint, this.#allRow, list, this.#more);
    this.clear();
  }

  /** @returns what was found, in a sentence. */
  show(subject: SubjectInput, status: Status, again: boolean): string {
    const people = bySubject(status);
    const isPart = 'part' in subject;
    if (!again) this.#shown = PAGE;
    this.#found = people;
    this.#part = isPart ? subject.part : '';
    for (const { hash } of people) {
      this.#desk.names.saw(hash);
      if ('parts' in subject) this.#desk.names.learn(hash, subject.parts.join(', '));
      if (isPart && this.#desk.names.typed(hash) === undefined)
        this.#desk.names.learn(hash, `key with ${subject.part}`);
    }
    show(this.#hint, isPart && people.length === 0);
    this.#all = isPart && people.length > 1 ? everybody(subject, status, people.length) : undefined;
    this.#drawAll();
    const hadFocus = this.#root.contains(document.activeElement);
    this.#draw();
    if (again && hadFocus && !this.#root.contains(document.activeElement)) byId('lookup-title').focus();
    return sentence(subject, status, people.length);
  }

  clear(): void {
    this.#found = [];
    this.#all = undefined;
    show(this.#hint, false);
    this.#drawAll();
    this.#draw();
  }

  /** What stands there is old, and nothing to act on. */
  stale(isStale: boolean): void {
    freeze(this.#root, isStale, byId('lookup-title'));
  }

  #draw(): void {
    this.#people.show(this.#found.slice(0, this.#shown));
    show(this.#more, this.#found.length > this.#shown);
    setText(this.#more, `Show more of ${this.#found.length.toLocaleString()}`);
  }

  #drawAll(): void {
    const all = this.#all;
    const isOffered = all !== undefined && this.#desk.mayWrite;
    if (isOffered !== this.#allRow.hasChildNodes()) {
      this.#allRow.replaceChildren(...(isOffered ? [this.#unblockAll, this.#resetAll] : []));
    }
    if (all === undefined) return;
    const n = all.subjects.toLocaleString();
    setText(this.#unblockAll, `Unblock all ${n}`);
    setText(this.#resetAll, `Reset all ${n}`);
    this.#unblockAll.className = all.blocks > 0 && !all.usedUp ? 'primary' : 'quiet';
    this.#resetAll.className = all.usedUp ? 'primary' : 'quiet';
  }
}

function everybody(subject: { readonly part: string }, { readings, more }: Status, subjects: number): Whom {
  return {
    subject,
    name: subject.part,
    subjects,
    blocks: readings.filter(({ block }) => block !== null).length,
    usedUp: readings.some(one => cure(one) !== undefined && isUsedUp(one)),
    more,
  };
}

/** What was found. Whoever is blocked in shadow mode alone is refused by nobody. */
function sentence(subject: SubjectInput, { readings, more, unlisted }: Status, people: number): string {
  const are = (n: number): string => (n === 1 ? 'subject is' : 'subjects are');
  if (people === 0 && 'hash' in subject) {
    return 'Nobody who is blocked, or was listed here, has a hash that begins so. Give all 64 digits.';
  }
  if ('part' in subject) {
    const missing =
      unlisted.length === 0
        ? ''
        : ` The store of ${unlisted.join(', ')} keeps no list of blocks and was not searched.`;
    const found = people === 0 ? 'Nobody is' : `${people.toLocaleString()} ${are(people)}`;
    return `${found} blocked with this part${more ? ', and there are more' : ''}.${missing}`;
  }
  const alike = people > 1 ? `${String(people)}${more ? ' or more' : ''} hashes begin so. ` : '';
  const standing = readings.filter(({ block }) => block !== null);
  const real = standing.filter(({ mode }) => mode === 'enforce').length;
  const shadow = standing.length - real;
  const inShadow = shadow === 0 ? '' : ` Blocked in ${String(shadow)} in shadow mode, which refuses nobody.`;
  return `${alike}${real === 0 ? 'Not blocked.' : `Blocked in ${String(real)} of ${String(readings.length)} scopes.`}${inShadow}`;
}

function bySubject({ readings, at }: Status): Person[] {
  const people = new Map<string, Standing[]>();
  for (const standing of readings) {
    const list = people.get(standing.subjectHash);
    if (list === undefined) people.set(standing.subjectHash, [standing]);
    else list.push(standing);
  }
  return [...people].map(([hash, standings]) => ({ hash, standings, at }));
}
