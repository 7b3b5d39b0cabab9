// Plans that the server stores.

import { isAbort, messageOf } from '../api.ts';
import { type Context, disabledBy } from '../context.ts';
import type { StoredPlan } from '../documents.ts';
import { openDialog } from '../dialog.ts';
import { button, element, replace } from '../element.ts';
import { bytes, time } from '../format.ts';
import { cell, numberCell, Rows, table } from '../list.ts';
import { newest } from '../newest.ts';
import { done } from '../notice.ts';

/** Opens the list of stored plans. `onOpen` gets the name and the text of the chosen one. */
export function storedDialog(context: Context, onOpen: (name: string, text: string) => void): void {
  const { api, me, signal, store } = context;
  const problem = element('p', { class: 'problem', role: 'alert' });
  const empty = element('p', { class: 'empty', hidden: true }, 'No stored plans yet.');
  const place = element('div', {}, 'Loading…');
  const attempt = (work: () => Promise<void>): void => {
    problem.textContent = '';
    work().catch((error: unknown) => {
      if (!isAbort(error)) problem.textContent = messageOf(error);
    });
  };
  const rows = new Rows<StoredPlan>(
    (plan) => plan.name,
    (plan) => [
      cell('Plan', plan.name),
      numberCell('Length', bytes(plan.bytes)),
      cell('Change', time(plan.changed_unix_ns)),
      element(
        'td',
        { class: 'actions' },
        button(
          'Open',
          () =>
            attempt(async () => {
              const text = await api.call('GET /plans/{name}', {
                path: { name: plan.name },
                signal,
              });
              dialog.close();
              onOpen(plan.name, text);
            }),
          { class: 'small', 'aria-label': `Open ${plan.name}` },
        ),
        button(
          'Delete',
          (event) => {
            const node = event.currentTarget as HTMLButtonElement;
            // A second press confirms: a dialog above a dialog would hide the list.
            if (node.dataset['armed'] === undefined) {
              node.dataset['armed'] = '';
              node.textContent = 'Really delete';
              node.classList.add('danger');
              return;
            }
            attempt(async () => {
              await api.call('DELETE /plans/{name}', { path: { name: plan.name } });
              done(`Deleted plan ${plan.name}.`);
              // Also while there are no events.
              await read();
            });
          },
          {
            class: 'small',
            'aria-label': `Delete ${plan.name}`,
            ...disabledBy(me.refusal('DELETE /plans/{name}')),
          },
        ),
      ),
    ],
  );
  const list = table(
    'Stored plans',
    [
      { label: 'Plan' },
      { label: 'Length', isNumber: true },
      { label: 'Change' },
      { label: 'Actions' },
    ],
    rows.body,
  );
  const read = newest(
    () => api.call('GET /plans', { signal }),
    (plans) => {
      rows.update(plans);
      empty.hidden = plans.length > 0;
      list.hidden = plans.length === 0;
      if (!list.isConnected) replace(place, list);
    },
  );
  const dialog = openDialog({ title: 'Stored plans', isWide: true }, place, empty, problem);
  attempt(read);
  const closed = new AbortController();
  dialog.addEventListener('close', () => closed.abort());
  let version = store.plansVersion;
  store.subscribe(() => {
    if (version === store.plansVersion) return;
    version = store.plansVersion;
    attempt(read);
  }, closed.signal);
}
