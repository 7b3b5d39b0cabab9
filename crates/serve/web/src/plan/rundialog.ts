// The dialog that starts a run of a plan.

import { ApiError } from '../api.ts';
import type { Context } from '../context.ts';
import type { PlanPort, RunRequest } from '../documents.ts';
import { openDialog } from '../dialog.ts';
import { LINKS } from '../ports.ts';
import { checkbox, element, labelled, select } from '../element.ts';

/** Opens the dialog. `ports`: those of the plan, in plan order. */
export function runDialog(
  { api, store }: Context,
  plan: RunRequest['plan'],
  planName: string,
  ports: readonly PlanPort[],
): void {
  const bindings = ports.map((port, at) => {
    // Plans often name the interfaces of another machine.
    const isLent = store.ports.some(
      (it) => it.interface === port.interface || it.name === port.interface,
    );
    const same = store.ports.find((it) => it.name === port.name) ?? store.ports[at];
    const control = select(
      [
        ...(port.interface ? [['', `as in the plan: ${port.interface}`] as const] : []),
        ...store.ports.map(
          (it) => [it.name, `${it.name} (${it.interface}, ${LINKS[it.link]})`] as const,
        ),
      ],
      { name: `port-${port.name}`, value: isLent ? '' : (same?.name ?? '') },
    );
    return { port, control };
  });
  const length = element('input', {
    type: 'text',
    placeholder: 'as in the plan',
    name: 'duration',
  });
  const multiplier = element('input', { type: 'text', placeholder: '1', name: 'multiplier' });
  const name = element('input', {
    type: 'text',
    value: planName.replace(/\.(ya?ml|json)$/, ''),
    name: 'name',
  });
  const start = select(
    [
      ['now', 'as soon as it is prepared'],
      ['on_command', 'on command'],
    ],
    { name: 'start' },
  );
  const ends = checkbox('Stop when the lease of a port ends', { name: 'when_lease_ends' });
  const force = checkbox('Send even on the interface of the default route', {
    name: 'force_interface',
  });
  openDialog(
    {
      title: 'Run the plan',
      action: 'Run',
      onAction: async () => {
        const body: RunRequest = {
          plan,
          name: name.value.trim() || null,
          ports: Object.fromEntries(
            bindings
              .filter(({ control }) => control.value)
              .map(({ port, control }) => [port.name, control.value]),
          ),
          options: {
            duration: length.value.trim() || null,
            multiplier: multiplier.value.trim() || null,
            force_interface: force.input.checked ? true : null,
          },
          start: start.value as 'now' | 'on_command',
          when_lease_ends: ends.input.checked ? 'stop' : 'continue',
        };
        try {
          const run = await api.call('POST /runs', { body });
          store.putRun(run);
          location.hash = `#/runs/${encodeURIComponent(run.id)}`;
        } catch (error) {
          if (error instanceof ApiError && error.document.code === 'missing_file') {
            throw new ApiError(error.status, {
              ...error.document,
              message: `${error.message} Upload it in the view Captures.`,
            });
          }
          throw error;
        }
      },
    },
    store.ports.length === 0 && element('p', { class: 'problem' }, 'The server lends no ports.'),
    bindings.length > 0 &&
      element(
        'fieldset',
        {},
        element('legend', {}, 'Ports'),
        element(
          'div',
          { class: 'fields' },
          bindings.map(({ port, control }) => labelled(`Port ${port.name}`, control)),
        ),
      ),
    element(
      'div',
      { class: 'fields' },
      labelled('Duration', length, 'At most, such as 30s; empty: as in the plan.'),
      labelled('Multiplier', multiplier, 'Such as 2, 50% or 10kpps.'),
      labelled('Name', name, 'In the history; may be empty.'),
      labelled('Start', start),
    ),
    ends.node,
    force.node,
  );
}
