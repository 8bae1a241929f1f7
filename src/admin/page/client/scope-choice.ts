import { h } from './dom.js';

/** The scopes to choose from, behind one for all: others after a deploy, and then the choice stays where it can. */
export function offer(select: HTMLSelectElement, scopes: readonly string[], all: string): void {
  const names = ['', ...scopes];
  const offered = [...select.options].map(({ value }) => value);
  if (offered.length === names.length && names.every((name, i) => name === offered[i])) return;
  const chosen = select.value;
  select.replaceChildren(...names.map(name => h('option', { value: name }, name === '' ? all : name)));
  select.value = names.includes(chosen) ? chosen : '';
}
