// The ports of a plan.

import { button, element, labelled } from '../element.ts';
import { isObject, type Json, type JsonObject, type Slot } from './document.ts';
import { dynamic, textInput, valueForm } from './form.ts';
import type { PlanSchema } from './schema.ts';

const PORTS_MAX = 64;

/** Returns the names of the ports of a plan. */
export function portNames(root: Slot): string[] {
  return root
    .key('ports')
    .list.filter(isObject)
    .map((port) => String(port['name'] ?? ''));
}

/** Creates the forms of the ports. `onNames` is called when their names change. */
export function portsForm(schema: PlanSchema, root: Slot, onNames: () => void): HTMLElement {
  const slot = root.key('ports');
  return dynamic((again) => {
    const ports = slot.list;
    return [
      element(
        'div',
        { class: 'plan-ports' },
        ports.slice(0, PORTS_MAX).map((_, at) => {
          const port = slot.at(at);
          const name = port.key('name');
          let before = String(name.value ?? '');
          const input = textInput(name, false, { class: 'short' }, () => {
            const after = String(name.value ?? '');
            rename(root, before, after);
            before = after;
            onNames();
          });
          return element(
            'div',
            { class: 'plan-port' },
            element(
              'div',
              { class: 'value-form', 'data-path': name.path },
              labelled('Port', input),
              element('p', { class: 'problem' }),
            ),
            valueForm(schema, schema.port('location'), port.key('location'), {
              label: 'Interface',
              isOptional: true,
            }),
            element(
              'details',
              {
                class: 'more',
                open: ['addresses', 'gateway', 'speed'].some(
                  (key) => port.key(key).value !== undefined,
                ),
              },
              element(
                'summary',
                { 'aria-label': `Addresses and speed of port ${before}` },
                'Addresses, speed',
              ),
              ['addresses', 'gateway', 'speed'].map((key) => hostForm(schema, port, key)),
            ),
            button(
              'Remove',
              () => {
                port.set(undefined);
                again();
                onNames();
              },
              {
                class: 'small',
                'data-key': `${port.path}:remove`,
                'aria-label': `Remove port ${before}`,
              },
            ),
          );
        }),
      ),
      ports.length < PORTS_MAX &&
        button(
          'Add port',
          () => {
            const names = portNames(root);
            let number = names.length + 1;
            while (names.includes(`port ${number}`)) number += 1;
            slot.set([...slot.list, { name: `port ${number}` }]);
            again();
            onNames();
          },
          { class: 'small', 'data-key': 'ports:add' },
        ),
    ];
  });
}

/** One address or a list: a text with commas. */
function hostForm(schema: PlanSchema, port: Slot, key: string): HTMLElement {
  if (key === 'speed')
    return valueForm(schema, schema.port(key), port.key(key), { label: 'Speed', isOptional: true });
  const slot = port.key(key);
  const { value } = slot;
  const input = element('input', {
    type: 'text',
    spellcheck: 'false',
    'data-path': slot.path,
    value: Array.isArray(value) ? value.join(', ') : value === undefined ? '' : String(value),
    placeholder: key === 'gateway' ? '10.0.0.254' : '10.0.0.1/24',
    on: {
      input: () => {
        const parts = input.value
          .split(',')
          .map((text) => text.trim())
          .filter(Boolean);
        slot.set(parts.length === 0 ? undefined : parts.length === 1 ? parts[0] : parts);
      },
    },
  });
  return element(
    'div',
    { class: 'value-form', 'data-path': slot.path },
    labelled(key === 'gateway' ? 'Gateway' : 'Addresses', input, 'With commas, if several.'),
    element('p', { class: 'problem' }),
  );
}

/** Gives the flows the new name of a port. */
function rename(root: Slot, before: string, after: string): void {
  if (!before || !after || before === after) return;
  const renamed = (value: Json | undefined): Json | undefined => (value === before ? after : value);
  const flows = root.key('flows').list.map((flow): Json => {
    if (!isObject(flow)) return flow;
    const next: JsonObject = { ...flow };
    if (next['tx'] !== undefined) next['tx'] = renamed(next['tx'])!;
    if (Array.isArray(next['rx'])) next['rx'] = next['rx'].map((it) => renamed(it)!);
    else if (next['rx'] !== undefined) next['rx'] = renamed(next['rx'])!;
    return next;
  });
  root.key('flows').set(flows);
}
