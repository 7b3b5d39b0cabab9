// Dialogs. The browser keeps the focus inside and returns it to where it was.

import { messageOf } from './api.ts';
import { button, type Child, element, freshId } from './element.ts';

export interface DialogOptions {
  title: string;
  /** Label of the button that acts; no button without it. */
  action?: string;
  /** Whether the action destroys something. */
  isDangerous?: boolean;
  /** Executes the action; the dialog closes unless it fails or returns false. */
  onAction?: (signal: AbortSignal) => Promise<void | boolean>;
  /** Shows an error of the action itself, for example at a field; returns whether it did. */
  onError?: (error: unknown) => boolean;
  cancel?: string;
  isWide?: boolean;
}

/** Opens a dialog with a form. Escape cancels, and so does its end for a running action. */
export function openDialog(options: DialogOptions, ...content: Child[]): HTMLDialogElement {
  const title = element('h2', { id: freshId('dialog') }, options.title);
  const problem = element('p', { class: 'problem', role: 'alert' });
  const stop = new AbortController();
  const cancel = button(
    options.cancel ?? (options.action ? 'Cancel' : 'Close'),
    () => dialog.close(),
    { class: 'quiet' },
  );
  const act =
    options.action === undefined
      ? null
      : element(
          'button',
          { type: 'submit', class: options.isDangerous ? 'danger' : 'primary' },
          options.action,
        );
  const form = element(
    'form',
    {
      novalidate: true,
      on: {
        submit: (event) => {
          event.preventDefault();
          run();
        },
      },
    },
    title,
    element('div', { class: 'dialog-body' }, content),
    problem,
    element('div', { class: 'dialog-actions' }, cancel, act),
  );
  const dialog = element(
    'dialog',
    {
      'aria-labelledby': title.id,
      class: options.isWide ? 'wide' : null,
      on: {
        close: () => {
          stop.abort();
          dialog.remove();
          opener?.isConnected && opener.focus();
        },
      },
    },
    form,
  );
  const opener = document.activeElement instanceof HTMLElement ? document.activeElement : null;

  function run(): void {
    if (!act || act.disabled || !options.onAction) return;
    problem.textContent = '';
    act.disabled = true;
    options
      .onAction(stop.signal)
      .then((isDone) => {
        if (isDone !== false) dialog.close();
      })
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        problem.textContent = messageOf(error);
        options.onError?.(error);
      })
      .finally(() => {
        act.disabled = false;
      });
  }

  document.body.append(dialog);
  dialog.showModal();
  // The first control of the content; the harmless button of a question.
  const first = form.querySelector<HTMLElement>(
    '.dialog-body :is(input, select, textarea, button):not(:disabled)',
  );
  (first ?? cancel).focus();
  return dialog;
}

/** Asks before something is destroyed. */
export function confirm(
  title: string,
  action: string,
  work: () => Promise<void>,
  ...content: Child[]
): void {
  openDialog({ title, action, isDangerous: true, onAction: work }, content);
}
