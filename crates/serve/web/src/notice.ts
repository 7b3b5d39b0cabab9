// Messages to the user: what was done, what failed, and the state of the connection.

import { isAbort, messageOf } from './api.ts';
import { button, type Child, element } from './element.ts';

const NOTICES_MAX = 4;
const DONE_MS = 6_000;

const status = element('div', { class: 'notices', role: 'status', 'aria-live': 'polite' });
const alerts = element('div', { class: 'notices', role: 'alert' });

/** The places of all messages. Screen readers announce what appears there. */
export const notices = element('div', { class: 'notice-area' }, alerts, status);

/** Shows a message for some seconds. */
export function done(...text: Child[]): void {
  const node = show(status, 'good', text);
  window.setTimeout(() => node.remove(), DONE_MS);
}

/** Shows a message until the user closes it. */
export function note(...text: Child[]): void {
  show(status, 'good', text);
}

/** Shows an error until the user closes it. The end of a cancelled request is no error. */
export function failed(what: string, error: unknown): void {
  if (isAbort(error)) return;
  show(alerts, 'bad', [element('strong', {}, `${what}: `), messageOf(error)]);
}

/** Executes what a user asked for; its failure becomes a message. */
export function attempt(what: string, work: () => Promise<void>): void {
  work().catch((error: unknown) => failed(what, error));
}

/** Removes all messages. */
export function clearNotices(): void {
  status.replaceChildren();
  alerts.replaceChildren();
}

function show(place: HTMLElement, kind: string, text: readonly Child[]): HTMLElement {
  const node = element(
    'div',
    { class: `notice ${kind}` },
    element('span', { class: 'notice-text' }, text),
  );
  node.append(button('Close', () => node.remove(), { class: 'quiet small' }));
  place.append(node);
  while (place.childElementCount > NOTICES_MAX) place.firstElementChild?.remove();
  return node;
}
