// Forms of values that the schema describes.

import {
  button,
  type Child,
  element,
  freshId,
  labelled,
  marked,
  rebuild,
  select,
} from '../element.ts';
import { type Json, type Slot } from './document.ts';
import { fieldForm } from './field.ts';
import { placeInput } from './input.ts';
import {
  type Alternative,
  defaultOf,
  parseInput,
  type PlanSchema,
  type Schema,
  words,
} from './schema.ts';

const ITEMS_MAX = 256;

/** Values to begin with, where an empty form would be wrong. */
const INITIAL: Readonly<Record<string, Json>> = {
  'key:random': { min: 64, max: 1518 },
  'key:increment': { start: 64, end: 1518, step: 1 },
  'key:weight_pairs': {
    custom: [
      { size: 64, weight: 7 },
      { size: 594, weight: 4 },
      { size: 1518, weight: 1 },
    ],
  },
  'key:custom': [{ size: 64, weight: 1 }],
  'key:predefined': 'imix',
  'key:burst': { packets: 100, inter_burst_gap: '1ms' },
  'key:fixed_packets': 1000,
  'key:fixed_seconds': 10,
  'key:on_off': { on: '10ms', off: '10ms' },
  'key:poisson': {},
  'key:fixed': 128,
  'key:frame': 124,
  'key:ip': 110,
  'key:zeros': true,
};

/** Creates an element that is rebuilt by its own controls. */
export function dynamic(build: (again: () => void) => Child[], attributes = {}): HTMLElement {
  const node = element('div', attributes);
  const again = (): void => rebuild(node, () => build(again));
  again();
  return node;
}

/** Creates a text input for a place. Empty: the key is absent. */
export function textInput(
  slot: Slot,
  isNumber: boolean,
  attributes: Record<string, unknown> = {},
  onInput?: () => void,
): HTMLInputElement {
  return placeInput(slot, attributes, (text) => {
    slot.set(parseInput(text, isNumber ? 'number' : 'text'));
    onInput?.();
  });
}

export interface FormOptions {
  label: string;
  /** Whether the value may be absent. */
  isOptional: boolean;
  /** Label of the absent value. */
  absent?: string;
  /** Labels of alternatives by ID. */
  labels?: Readonly<Record<string, string>>;
  /** Alternatives that appear only if the value has them. */
  hidden?: readonly string[];
}

/** Creates the form of a value: a choice among its forms, and the inputs of the chosen one. */
export function valueForm(
  schema: PlanSchema,
  part: Schema,
  slot: Slot,
  options: FormOptions,
): HTMLElement {
  const description = schema.resolve(part).description;
  const preset = defaultOf(description);
  const all = schema.alternatives(part);
  return dynamic(
    (again) => {
      const current = schema.match(all, slot.value);
      const shown = all.filter((it) => it.id === current?.id || !options.hidden?.includes(it.id));
      const hint = current?.description ?? description;
      if (shown.length === 1 && shown[0]!.kind === 'text') {
        const input = textInput(slot, shown[0]!.isNumber === true, {
          placeholder: preset ?? '',
        });
        return [labelled(options.label, input, hint), element('p', { class: 'problem' })];
      }
      if (shown.length === 1 && shown[0]!.kind === 'object') {
        return [
          element(
            'fieldset',
            {},
            element('legend', {}, options.label),
            objectForm(schema, shown[0]!.schema, slot),
          ),
        ];
      }
      if (shown.length === 1 && shown[0]!.kind === 'list') {
        return [
          element(
            'fieldset',
            {},
            element('legend', {}, options.label),
            listForm(schema, shown[0]!.schema, slot),
          ),
        ];
      }
      const choices: Array<[string, string]> = shown.map((it) => [
        it.id,
        options.labels?.[it.id] ?? it.label,
      ]);
      const isUnknown = slot.value !== undefined && !current;
      if (options.isOptional || slot.value === undefined)
        choices.unshift(['', options.absent ?? (preset === null ? 'none' : `default: ${preset}`)]);
      if (isUnknown) choices.push(['unknown', 'other']);
      const choice = select(choices, {
        value: isUnknown ? 'unknown' : (current?.id ?? ''),
        id: freshId('control'),
        'data-path': slot.path,
        'data-key': `${slot.path}:choice`,
        on: {
          change: () => {
            const next = shown.find((it) => it.id === choice.value);
            slot.set(next ? initial(next) : undefined);
            again();
          },
        },
      });
      const label = element('label', { for: choice.id }, options.label);
      const details = current
        ? alternativeForm(schema, current, slot, options.label)
        : isUnknown
          ? [textInput(slot, false, { disabled: true, 'aria-label': options.label })]
          : [];
      const isInline =
        current?.kind === 'text' ||
        (current?.kind === 'key' && schema.alternatives(current.schema)[0]?.kind === 'text');
      return [
        element(
          'div',
          { class: 'control' },
          label,
          element('div', { class: isInline ? 'inline' : 'stacked' }, choice, details),
          hint && element('span', { class: 'hint' }, marked(hint)),
        ),
        element('p', { class: 'problem' }),
      ];
    },
    { class: 'value-form', 'data-path': slot.path },
  );
}

function initial(it: Alternative): Json {
  const value = it.value ?? INITIAL[it.id];
  if (it.kind === 'key') return { [it.key!]: value === undefined ? '' : structuredClone(value) };
  if (value !== undefined) return structuredClone(value);
  switch (it.kind) {
    case 'object':
      return {};
    case 'list':
      return [];
    case 'boolean':
      return true;
    default:
      return '';
  }
}

function alternativeForm(schema: PlanSchema, it: Alternative, slot: Slot, label: string): Child[] {
  switch (it.kind) {
    case 'const':
      return [];
    case 'text':
      return [
        textInput(slot, it.isNumber === true, {
          'aria-label': `${label}: ${it.label}`,
          placeholder: it.schema.description ?? '',
        }),
      ];
    case 'boolean':
      return [booleanSelect(slot, label)];
    case 'object':
      return [objectForm(schema, it.schema, slot)];
    case 'list':
      return [listForm(schema, it.schema, slot)];
    case 'key': {
      const inner = slot.key(it.key!);
      const parts = schema.alternatives(it.schema);
      if (parts.length === 1 && parts[0]!.kind === 'text')
        return [
          textInput(inner, parts[0]!.isNumber === true, { 'aria-label': `${label}: ${it.label}` }),
        ];
      if (parts.length === 1 && parts[0]!.kind === 'const') return [];
      if (parts.length === 1 && parts[0]!.kind === 'object')
        return [objectForm(schema, parts[0]!.schema, inner)];
      if (parts.length === 1 && parts[0]!.kind === 'list')
        return [listForm(schema, parts[0]!.schema, inner)];
      return [valueForm(schema, it.schema, inner, { label: it.label, isOptional: false })];
    }
  }
}

function booleanSelect(slot: Slot, label: string): HTMLSelectElement {
  const node = select(
    [
      ['true', 'yes'],
      ['false', 'no'],
    ],
    {
      'aria-label': label,
      value: String(slot.value === true),
      'data-path': slot.path,
      'data-key': `${slot.path}:input`,
      on: { change: () => slot.set(node.value === 'true') },
    },
  );
  return node;
}

/** Creates the forms of all keys of an object. */
export function objectForm(schema: PlanSchema, part: Schema, slot: Slot): HTMLElement {
  const it = schema.resolve(part);
  const required = new Set(it.required ?? []);
  const entries = Object.entries(it.properties ?? {});
  return element(
    'div',
    { class: 'fields' },
    entries.map(([key, property]) =>
      schema.isField(property)
        ? fieldForm(schema, property, slot.key(key), words(key))
        : valueForm(schema, property, slot.key(key), {
            label: words(key),
            isOptional: !required.has(key),
          }),
    ),
    it.patternProperties &&
      mapForm(schema, it.patternProperties, Object.keys(it.properties ?? {}), slot),
  );
}

/** Creates the forms of keys with names that the user chooses, such as `bytes[0..4]`. */
export function mapForm(
  schema: PlanSchema,
  patterns: Record<string, Schema>,
  known: readonly string[],
  slot: Slot,
): HTMLElement {
  const of = (key: string): Schema | undefined =>
    Object.entries(patterns).find(([pattern]) => new RegExp(pattern).test(key))?.[1];
  return dynamic(
    (again) => {
      const keys = Object.keys(slot.object)
        .filter((key) => !known.includes(key))
        .slice(0, ITEMS_MAX);
      const name = element('input', {
        type: 'text',
        placeholder: 'bytes[0..4]',
        'aria-label': 'Name of the field',
        'data-key': `${slot.path}:new`,
        spellcheck: 'false',
      });
      const problem = element('p', { class: 'problem', role: 'alert' });
      const add = (): void => {
        const key = name.value.trim();
        if (!of(key)) {
          const name = JSON.stringify(key);
          problem.textContent = `found ${name}, expected a field such as ipv4.src or bytes[0..4]`;
          return;
        }
        slot.key(key).set(0);
        again();
      };
      return [
        keys.map((key) =>
          element(
            'div',
            { class: 'item' },
            fieldForm(schema, of(key) ?? {}, slot.key(key), key),
            button(
              'Remove',
              () => {
                slot.key(key).set(undefined);
                again();
              },
              { class: 'small', 'aria-label': `Remove ${key}` },
            ),
          ),
        ),
        element('div', { class: 'inline' }, name, button('Add a field', add, { class: 'small' })),
        problem,
      ];
    },
    { class: 'map' },
  );
}

/** Creates the forms of the items of a list. */
export function listForm(schema: PlanSchema, part: Schema, slot: Slot): HTMLElement {
  const items = schema.resolve(part).items ?? {};
  return dynamic(
    (again) => [
      slot.list.slice(0, ITEMS_MAX).map((_, at) =>
        element(
          'div',
          { class: 'item' },
          itemForm(schema, items, slot.at(at), at),
          button(
            'Remove',
            () => {
              slot.at(at).set(undefined);
              again();
            },
            {
              class: 'small',
              'data-key': `${slot.path}:remove${at}`,
              'aria-label': `Remove item ${at + 1}`,
            },
          ),
        ),
      ),
      slot.list.length < ITEMS_MAX &&
        button(
          'Add',
          () => {
            const last = slot.list.at(-1);
            slot.set([...slot.list, last === undefined ? '' : structuredClone(last)]);
            again();
          },
          { class: 'small', 'data-key': `${slot.path}:add` },
        ),
    ],
    { class: 'items' },
  );
}

function itemForm(schema: PlanSchema, items: Schema, slot: Slot, at: number): HTMLElement {
  const parts = schema.alternatives(items);
  if (parts.length === 1 && parts[0]!.kind === 'object')
    return objectForm(schema, parts[0]!.schema, slot);
  if (parts.length === 1 && parts[0]!.kind === 'text')
    return textInput(slot, parts[0]!.isNumber === true, { 'aria-label': `Item ${at + 1}` });
  return valueForm(schema, items, slot, { label: `Item ${at + 1}`, isOptional: false });
}
