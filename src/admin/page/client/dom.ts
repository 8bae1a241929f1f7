type Child = Node | string | undefined;

/** The element of the document with this id, and of this kind where one is named. */
export function byId(id: string): HTMLElement;
export function byId<E extends HTMLElement>(id: string, kind: new () => E): E;
export function byId(id: string, kind: new () => HTMLElement = HTMLElement): HTMLElement {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`the page has no ${kind.name} #${id}`);
}

/** Makes an element. Texts become text nodes, never markup. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  element.append(...children.filter(child => child !== undefined));
  return element;
}

export function button(text: string, className: string, onClick: () => void): HTMLButtonElement {
  const element = h('button', { type: 'button', class: className }, text);
  element.addEventListener('click', onClick);
  return element;
}

/** Sets a text, but only when it changed: a status region would be read out again. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows or hides, leaving focus alone. */
export function show(element: HTMLElement, isShown: boolean): void {
  if (element.hidden === isShown) element.hidden = !isShown;
}

/** When the browser draws next. A tab that nobody looks at is not drawn, and need not wait. */
export function nextFrame(): Promise<void> {
  return new Promise(resolve => {
    if (document.hidden) resolve();
    else
      requestAnimationFrame(() => {
        resolve();
      });
  });
}

/** What stands there is old: it can be read, and nothing of it can be pressed. */
export function freeze(element: HTMLElement, isOld: boolean, focusInstead: HTMLElement): void {
  if (element.inert === isOld) return;
  if (isOld && element.contains(document.activeElement)) focusInstead.focus({ preventScroll: true });
  element.inert = isOld;
}

export interface Row<T> {
  readonly element: HTMLElement;
  readonly update: (item: T) => void;
}

/**
 * A list in the page that follows a list of items: rows are kept, not made anew, so that readers keep their place and the
 * focus stays on the button that it was on.
 */
export class KeyedList<T> {
  readonly #parent: HTMLElement;
  readonly #keyOf: (item: T) => string;
  readonly #make: (item: T) => Row<T>;
  readonly #rows = new Map<string, Row<T>>();

  constructor(parent: HTMLElement, keyOf: (item: T) => string, make: (item: T) => Row<T>) {
    this.#parent = parent;
    this.#keyOf = keyOf;
    this.#make = make;
  }

  /** @returns whether a row went that had the focus. */
  show(items: readonly T[]): boolean {
    const keys = new Set(items.map(this.#keyOf));
    let lostFocus = false;
    for (const [key, row] of this.#rows) {
      if (keys.has(key)) continue;
      lostFocus ||= row.element.contains(document.activeElement);
      row.element.remove();
      this.#rows.delete(key);
    }
    items.forEach((item, i) => {
      const key = this.#keyOf(item);
      const row = this.#rows.get(key) ?? this.#make(item);
      this.#rows.set(key, row);
      row.update(item);
      const there = this.#parent.children[i];
      if (there !== row.element) this.#parent.insertBefore(row.element, there ?? null);
    });
    return lostFocus;
  }
}
