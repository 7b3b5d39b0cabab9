// The form of a flow.

import { checkbox, type Child, element, freshId, labelled, select } from '../element.ts';
import { isObject, type Json, type Slot } from './document.ts';
import { dynamic, textInput, valueForm } from './form.ts';
import { parseInput, type PlanSchema } from './schema.ts';
import { stackForm } from './stack.ts';

const RATE_UNITS: ReadonlyArray<readonly [string, string]> = [
  ['pps', 'pps'],
  ['kpps', 'kpps'],
  ['Mpps', 'Mpps'],
  ['k-l1', 'kbit/s L1'],
  ['M-l1', 'Mbit/s L1'],
  ['G-l1', 'Gbit/s L1'],
  ['k-l2', 'kbit/s L2'],
  ['M-l2', 'Mbit/s L2'],
  ['G-l2', 'Gbit/s L2'],
  ['%', '% of speed'],
  ['max', 'maximum'],
];
const RATE_KEYS: Readonly<Record<string, string>> = {
  pps: 'pps',
  kbps: 'k-l1',
  mbps: 'M-l1',
  gbps: 'G-l1',
  bps: '-l1',
  bps_l1: '-l1',
  bps_l2: '-l2',
  percentage: '%',
};
const MORE = ['inter_departure', 'start', 'start_delay', 'next'];

/** Creates the form. `onName` is called when the name or the ports of the flow change. */
export function flowForm(
  schema: PlanSchema,
  slot: Slot,
  ports: readonly string[],
  onName: () => void,
): HTMLElement {
  const part = (key: string) => schema.flow(key);
  const more = MORE.filter((key) => part(key).description !== undefined);
  const isMoreOpen = more.some((key) => slot.key(key).value !== undefined);
  return element(
    'div',
    { class: 'flow-form' },
    element(
      'div',
      { class: 'fields' },
      row(slot.key('name'), labelled('Name', textInput(slot.key('name'), false, {}, onName))),
      row(slot.key('tx'), txForm(slot.key('tx'), ports)),
      rxForm(slot.key('rx'), ports),
    ),
    element('h3', {}, 'Packet'),
    stackForm(schema, part('packet'), slot.key('packet'), 'header'),
    element('h3', {}, 'Size, rate, duration'),
    element(
      'div',
      { class: 'fields' },
      valueForm(schema, part('size'), slot.key('size'), {
        label: 'Size',
        isOptional: true,
        absent: 'shortest that holds the packet',
        labels: {
          text: 'fixed',
          'key:random': 'random range',
          'key:increment': 'increasing',
          'key:weight_pairs': 'weights',
          'key:frame': 'without FCS',
          'key:ip': 'IP packet',
        },
        hidden: ['key:fixed'],
      }),
      rateForm(slot.key('rate')),
      valueForm(schema, part('duration'), slot.key('duration'), {
        label: 'Duration',
        isOptional: true,
        absent: 'continuous',
        hidden: ['const:continuous', 'key:fixed_seconds'],
        labels: {
          text: 'time',
          'key:burst': 'bursts',
          'key:fixed_packets': 'number of frames',
          'key:fixed_seconds': 'seconds',
          'const:continuous': 'continuous',
        },
      }),
      row(slot.key('metrics'), measuredForm(slot.key('metrics'))),
    ),
    element(
      'details',
      { class: 'more', open: isMoreOpen },
      element('summary', {}, 'Gaps, start, next flow'),
      element(
        'div',
        { class: 'fields' },
        more.map((key) =>
          valueForm(schema, part(key), slot.key(key), {
            label:
              {
                inter_departure: 'Gaps',
                start: 'Start',
                start_delay: 'Start delay',
                next: 'Next flow',
              }[key] ?? key,
            isOptional: true,
          }),
        ),
      ),
    ),
  );
}

/** Wraps a control with the place of its errors. */
function row(slot: Slot, ...content: Child[]): HTMLElement {
  return element(
    'div',
    { class: 'value-form', 'data-path': slot.path },
    content,
    element('p', { class: 'problem' }),
  );
}

function txForm(slot: Slot, ports: readonly string[]): HTMLElement {
  const value = typeof slot.value === 'string' ? slot.value : '';
  const names = value && !ports.includes(value) ? [value, ...ports] : ports;
  const control = select(
    [
      ...(value ? [] : [['', 'choose a port'] as const]),
      ...names.map((name) => [name, name] as const),
    ],
    {
      value,
      'data-path': slot.path,
      'data-key': `${slot.path}:input`,
      on: { change: () => slot.set(control.value) },
    },
  );
  return labelled('Tx port', control);
}

function rxForm(slot: Slot, ports: readonly string[]): HTMLElement {
  const { value } = slot;
  const chosen = new Set(
    (Array.isArray(value) ? value : value === undefined ? [] : [value]).map(String),
  );
  const names = [...ports, ...[...chosen].filter((name) => !ports.includes(name))];
  const write = (): void => {
    const list = names.filter((name) => chosen.has(name));
    slot.set(list.length === 0 ? undefined : list.length === 1 ? list[0] : list);
  };
  return element(
    'fieldset',
    { class: 'value-form rx', 'data-path': slot.path },
    element('legend', {}, 'Rx ports'),
    element(
      'div',
      { class: 'checks' },
      names.map((name) => {
        const { node, input } = checkbox(name, {
          checked: chosen.has(name),
          'data-key': `${slot.path}:${name}`,
        });
        input.addEventListener('change', () => {
          if (input.checked) chosen.add(name);
          else chosen.delete(name);
          write();
        });
        return node;
      }),
    ),
    element('p', { class: 'problem' }),
  );
}

function measuredForm(slot: Slot): HTMLElement {
  const isOn = isObject(slot.value) && slot.value['enable'] !== false;
  const { node, input } = checkbox('Measure loss, order and delay', {
    checked: isOn,
    'data-path': slot.path,
    'data-key': `${slot.path}:input`,
  });
  input.addEventListener('change', () => slot.set(input.checked ? { enable: true } : undefined));
  return element(
    'div',
    { class: 'control' },
    element('span', { class: 'label' }, 'Measurement'),
    node,
  );
}

function rateForm(slot: Slot): HTMLElement {
  return dynamic(
    (again) => {
      const rate = readRate(slot.value);
      const units =
        rate && !RATE_UNITS.some(([unit]) => unit === rate.unit)
          ? [...RATE_UNITS, [rate.unit, rate.unit] as const]
          : RATE_UNITS;
      const number = element('input', {
        type: 'text',
        inputmode: 'decimal',
        id: freshId('rate'),
        value: rate ? rate.number : String(slot.value ?? ''),
        placeholder: '1000',
        'data-path': slot.path,
        'data-key': `${slot.path}:input`,
        class: 'short',
        hidden: rate?.unit === 'max',
        'aria-label': 'Rate',
        on: { input: () => write() },
      });
      const unit = select([...units, ...(rate ? [] : [['', 'as text'] as const])], {
        value: rate?.unit ?? '',
        'data-key': `${slot.path}:unit`,
        'aria-label': 'Unit of the rate',
        on: {
          change: () => {
            if (unit.value !== 'max' && !number.value.trim()) number.value = '1000';
            write();
            again();
          },
        },
      });
      const write = (): void => {
        const text = number.value.trim();
        if (unit.value === '' && /^[\d.]+$/.test(text)) unit.value = 'pps';
        if (unit.value === 'max') slot.set('max');
        else if (!text) slot.set(undefined);
        // A rate with its own unit, such as 5Mpps.
        else slot.set(/^[\d.]+$/.test(text) ? text + unit.value : parseInput(text, 'text'));
      };
      return [
        element(
          'div',
          { class: 'control' },
          element('label', { for: number.id }, 'Rate'),
          element('div', { class: 'inline' }, number, unit),
        ),
        element('p', { class: 'problem' }),
      ];
    },
    { class: 'value-form', 'data-path': slot.path },
  );
}

/** Returns the number and the unit of a rate; null if it has another form. */
function readRate(value: Json | undefined): { number: string; unit: string } | null {
  if (value === undefined) return { number: '', unit: 'pps' };
  if (value === 'max') return { number: '', unit: 'max' };
  if (typeof value === 'string') {
    const found = /^\s*([\d.]+)\s*([kKmMgGtT]?)\s*(?:(pps)|(?:bps)?-[lL]([12])|(%))\s*$/.exec(
      value,
    );
    if (!found) return null;
    const [, number, prefix = '', pps, layer, share] = found;
    const scale = { k: 'k', m: 'M', g: 'G', t: 'T' }[prefix.toLowerCase()] ?? '';
    return { number: number!, unit: share ? '%' : pps ? `${scale}pps` : `${scale}-l${layer}` };
  }
  if (isObject(value)) {
    const [entry] = Object.entries(value);
    const unit = entry && RATE_KEYS[entry[0]];
    if (
      entry &&
      unit !== undefined &&
      (typeof entry[1] === 'number' || typeof entry[1] === 'string')
    )
      return { number: String(entry[1]), unit };
  }
  return null;
}
