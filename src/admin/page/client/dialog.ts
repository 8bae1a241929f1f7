import { byId, setText } from './dom.js';

interface Question {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  /** Fields to fill in before saying yes. */
  readonly fields?: readonly HTMLElement[];
}

const dialog = byId('dialog', HTMLDialogElement);
const yes = byId('dialog-yes', HTMLButtonElement);

/** Ends a question that stands, as Cancel does. */
export function cancel(): void {
  if (dialog.open) dialog.close();
}

/** Asks before anything is changed. The focus begins on Cancel, Escape cancels, and both lead back to where it was. */
export function confirm({ title, text, yes: label, fields = [] }: Question): Promise<boolean> {
  setText(byId('dialog-title'), title);
  setText(byId('dialog-text'), text);
  setText(yes, label);
  byId('dialog-fields').replaceChildren(...fields);
  dialog.returnValue = '';
  dialog.showModal();
  byId('dialog-no').focus();
  return new Promise(resolve => {
    dialog.addEventListener(
      'close',
      () => {
        resolve(dialog.returnValue === 'yes');
      },
      { once: true },
    );
  });
}
