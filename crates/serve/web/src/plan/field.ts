// The form of a header field: constant, computed, or varying from frame to frame.

import { type Child, element, freshId, rebuild, select } from '../element.ts';
import { isObject, type Json, type JsonObject, type Slot } from './document.ts';
import { placeInput } from './input.ts';
import { defaultOf, parseInput, type PlanSchema, type Schema } from './schema.ts';

type Form =
  | ''
  | 'value'
  | 'values'
  | 'increment'
  | 'decrement'
  | 'random'
  | 'weighted'
  | 'auto'
  | 'bad'
  | 'other';

const PARTS: Readonly<
  Record<'increment' | 'decrement' | 'random', ReadonlyArray<readonly [string, string]>>
> = {
  increment: [
    ['start', 'start'],
    ['step', '1'],
    ['count', 'count'],
  ],
  decrement: [
    ['start', 'start'],
    ['step', '1'],
    ['count', 'count'],
  ],
  random: [
    ['min', 'least'],
    ['max', 'greatest'],
    ['count', 'count'],
    ['seed', 'seed'],
  ],
};
/** Keys beside the form of a value. */
const BESIDE: ReadonlyArray<readonly [string, string, boolean]> = [
  ['after', 'After field', false],
  ['restart_after', 'Restart after', true],
  ['mask', 'Mask', true],
  ['shift', 'Shift', true],
];
/** Keys whose values are whole numbers for every kind of field. */
const COUNTS = ['step', 'count', 'seed', 'restart_after', 'shift'];
const FORMS = ['values', 'increment', 'decrement', 'random', 'weighted'] as const;

/** Creates the row of a field: name, form, and the inputs of the form. */
export function fieldForm(
  schema: PlanSchema,
  part: Schema,
  slot: Slot,
  label: string,
): HTMLElement {
  const it = schema.resolve(part);
  const description = it.description ?? '';
  const reference = part.$ref ?? '';
  const isNumber = /uint|checksum/.test(reference);
  const base = isNumber
    ? '0'
    : /mac/.test(reference)
      ? '02:00:00:00:00:01'
      : /ipv4/.test(reference)
        ? '10.0.0.1'
        : /ipv6/.test(reference)
          ? '2001:db8::1'
          : '';
  const canBeBad = (it.anyOf ?? []).some((one) => one.const === 'bad');
  const preset = defaultOf(description);

  const choices: Array<[Form, string]> = [
    ['', preset === null ? 'default' : preset === 'computed' ? 'computed' : `default: ${preset}`],
    ['value', 'value'],
    ['values', 'list'],
    ['increment', 'increment'],
    ['decrement', 'decrement'],
    ['random', 'random'],
    ['weighted', 'weighted'],
    ['auto', 'auto'],
  ];
  if (canBeBad) choices.push(['bad', 'bad']);

  const own = (text: string): Json | undefined => parseInput(text, isNumber ? 'integer' : 'text');

  const node = element('div', { class: 'field', 'data-path': slot.path });
  const again = (): void => rebuild(node, build);
  const input = (
    place: Slot,
    name: string,
    placeholder: string,
    attributes: Record<string, unknown> = {},
    write?: (text: string) => void,
  ): HTMLInputElement => {
    // Counts and steps are numbers, also those of addresses.
    const isInteger = isNumber || COUNTS.some((key) => place.path.endsWith(`.${key}`));
    const own = { 'aria-label': `${label}: ${name}`, placeholder, title: name, ...attributes };
    return placeInput(
      place,
      own,
      write ?? ((text) => place.set(parseInput(text, isInteger ? 'integer' : 'text'))),
    );
  };

  function build(): Child[] {
    const form = formOf(slot.value);
    const shown = form === 'other' ? [...choices, ['other', 'other'] as [Form, string]] : choices;
    const choice = select(shown, {
      value: form,
      id: freshId('field'),
      class: 'form',
      'data-key': `${slot.path}:form`,
      on: {
        change: () => {
          slot.set(
            converted(
              slot.value,
              choice.value as Form,
              preset === null || preset === 'computed' ? base : preset,
              isNumber,
            ),
          );
          again();
          node.querySelector<HTMLElement>('input')?.focus();
        },
      },
    });
    return [
      element('label', { for: choice.id, title: description }, label),
      choice,
      element('div', { class: 'inputs' }, inputs(form)),
      element('p', { class: 'problem' }),
    ];
  }

  function inputs(form: Form): Child[] {
    switch (form) {
      case 'value':
        return [
          isObject(slot.value)
            ? input(slot.key('value'), 'value', base)
            : input(slot, 'value', base),
        ];
      case 'values':
        return [listInput(slot.key('values')), beside()];
      case 'weighted':
        return [weightedInput(slot.key('weighted')), beside()];
      case 'increment':
      case 'decrement':
      case 'random':
        return [
          PARTS[form].map(([key, text]) =>
            element(
              'span',
              { class: 'part' },
              element('span', { class: 'part-name', 'aria-hidden': 'true' }, key),
              input(slot.key(form).key(key), key, text === key ? '' : text),
            ),
          ),
          beside(),
        ];
      case 'other':
        return [
          element('code', {}, JSON.stringify(slot.value)),
          element('span', { class: 'hint' }, 'Edit this one as text.'),
        ];
      default:
        return [];
    }
  }

  function listInput(place: Slot): HTMLInputElement {
    return input(
      place,
      'values, with commas',
      '80, 443',
      { value: place.list.map(String).join(', '), class: 'wide' },
      (text) => {
        place.set(
          text
            .split(',')
            .map(own)
            .filter((value) => value !== undefined),
        );
      },
    );
  }

  function weightedInput(place: Slot): HTMLInputElement {
    const pairs = place.list.map((pair) =>
      Array.isArray(pair) ? `${String(pair[0])} = ${String(pair[1])}` : JSON.stringify(pair),
    );
    return input(
      place,
      'value = weight, with commas',
      '443 = 8, 80 = 2',
      { value: pairs.join(', '), class: 'wide' },
      (text) => {
        place.set(
          text
            .split(',')
            .filter((part) => part.trim())
            .map((part) => {
              const [value, weight] = part.split('=');
              return [own(value ?? '') ?? '', parseInput(weight ?? '', 'integer') ?? ''];
            }),
        );
      },
    );
  }

  function beside(): HTMLElement {
    const isUsed = BESIDE.some(([key]) => slot.object[key] !== undefined);
    return element(
      'details',
      { class: 'beside', open: isUsed },
      element('summary', { 'aria-label': `More of ${label}` }, 'more'),
      BESIDE.map(([key, name]) =>
        element(
          'span',
          { class: 'part' },
          element('span', { class: 'part-name', 'aria-hidden': 'true' }, name),
          input(slot.key(key), name, ''),
        ),
      ),
    );
  }

  again();
  return node;
}

function formOf(value: Json | undefined): Form {
  if (value === undefined) return '';
  if (value === 'auto' || value === 'bad') return value;
  if (typeof value === 'string' || typeof value === 'number') return 'value';
  if (!isObject(value)) return 'other';
  const form = FORMS.find((it) => value[it] !== undefined);
  if (form === 'weighted' && !Array.isArray(value['weighted'])) return 'other';
  if (form) return form;
  return value['value'] !== undefined && Object.keys(value).length === 1 ? 'value' : 'other';
}

/** Converts a value to another form, and keeps what both have. */
function converted(
  value: Json | undefined,
  form: Form,
  preset: string,
  isNumber: boolean,
): Json | undefined {
  const first: Json =
    firstOf(value) ?? parseInput(preset, isNumber ? 'integer' : 'text') ?? (isNumber ? 0 : '');
  const kept: JsonObject = {};
  if (isObject(value))
    for (const [key] of BESIDE) if (value[key] !== undefined) kept[key] = value[key];
  switch (form) {
    case '':
      return undefined;
    case 'auto':
    case 'bad':
      return form;
    case 'values':
      return { ...kept, values: [first] };
    case 'increment':
    case 'decrement':
      return { ...kept, [form]: { start: first, step: 1, count: 10 } };
    case 'random':
      return { ...kept, random: { min: first, max: first } };
    case 'weighted':
      return { ...kept, weighted: [[first, 1]] };
    default:
      return first;
  }
}

function firstOf(value: Json | undefined): Json | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'string') return value === 'auto' || value === 'bad' ? undefined : value;
  if (!isObject(value)) return undefined;
  const { values, increment, decrement, random, weighted } = value;
  if (Array.isArray(values)) return values[0];
  if (isObject(increment)) return increment['start'];
  if (isObject(decrement)) return decrement['start'];
  if (isObject(random)) return random['min'];
  if (Array.isArray(weighted) && Array.isArray(weighted[0])) return weighted[0][0];
  return value['value'];
}
