// A stack of headers, or of the options of a header: add, copy, remove, reorder.

import { button, type Child, element, freshId, select } from '../element.ts';
import { isObject, type Json, type Slot } from './document.ts';
import { fieldForm } from './field.ts';
import { dynamic, mapForm, valueForm } from './form.ts';
import { many } from '../format.ts';
import { type PlanSchema, type Schema, words } from './schema.ts';

const HEADERS_MAX = 64;

/** Fields that users set most, in the order of the form. Other headers show their first ones. */
const MAIN: Readonly<Record<string, readonly string[]>> = {
  ethernet: ['dst', 'src'],
  vlan: ['id', 'priority'],
  ipv4: ['src', 'dst', 'time_to_live', 'dscp'],
  ipv6: ['src', 'dst', 'hop_limit', 'traffic_class'],
  tcp: ['src_port', 'dst_port', 'seq_num', 'ctl_syn', 'ctl_ack'],
  udp: ['src_port', 'dst_port'],
  icmp: ['type', 'code', 'identifier', 'sequence_number'],
  icmpv6: ['type', 'code'],
  mpls: ['label', 'time_to_live'],
  vxlan: ['vni'],
  gre: ['key'],
  gtpv1: ['teid'],
  arp: [
    'operation',
    'sender_hardware_addr',
    'sender_protocol_addr',
    'target_hardware_addr',
    'target_protocol_addr',
  ],
};
const MAIN_COUNT = 4;
/** Headers that most packets have, first in the list. */
const COMMON = [
  'ethernet',
  'vlan',
  'ipv4',
  'ipv6',
  'udp',
  'tcp',
  'icmp',
  'arp',
  'mpls',
  'vxlan',
  'gre',
  'payload',
];

/** Creates the stack at a place. `what`: `header` or `option`. */
export function stackForm(schema: PlanSchema, part: Schema, slot: Slot, what: string): HTMLElement {
  const kinds = schema.headers(schema.resolve(part).items ?? {});
  const rank = (name: string): number =>
    COMMON.includes(name) ? COMMON.indexOf(name) : COMMON.length;
  const sorted = [...kinds].sort((a, b) => rank(a[0]) - rank(b[0]) || a[0].localeCompare(b[0]));
  const node = dynamic(
    (again) => {
      // For this build alone: fields change without another one, so commands read the list again.
      const items = slot.list;
      const set = (list: Json[], focus: string | null): void => {
        slot.set(list);
        again();
        if (focus !== null)
          node.querySelector<HTMLElement>(`[data-key="${CSS.escape(focus)}"]`)?.focus();
      };
      const choice = select(
        sorted.map(([name, it]) => [name, `${words(name)}${describe(schema, it)}`]),
        {
          id: freshId('add'),
          'data-key': `${slot.path}:kind`,
          value: following(
            items,
            kinds.map(([name]) => name),
          ),
        },
      );
      return [
        element(
          'ol',
          { class: 'stack' },
          items.slice(0, HEADERS_MAX).map((item, at) => {
            const name = (isObject(item) && Object.keys(item)[0]) || '';
            const kind = kinds.find(([it]) => it === name)?.[1];
            const label = `${what} ${at + 1}, ${words(name)}`;
            const key = (action: string, place = at): string => `${slot.path}[${place}]:${action}`;
            const move = (to: number, action: string): void => {
              const list = [...slot.list];
              list.splice(to, 0, ...list.splice(at, 1));
              set(list, key(action, to));
            };
            return element(
              'li',
              { class: 'header', 'data-path': `${slot.path}[${at}]` },
              element(
                'div',
                { class: 'header-head' },
                element('strong', {}, words(name) || 'unknown'),
                element(
                  'span',
                  { class: 'hint' },
                  kind ? (schema.resolve(kind).description ?? '') : '',
                ),
                element(
                  'span',
                  { class: 'buttons' },
                  button('↑', () => move(at - 1, at - 1 > 0 ? 'up' : 'down'), {
                    class: 'small',
                    'data-key': key('up'),
                    'aria-label': `Move ${label} up`,
                    title: 'Up',
                    disabled: at === 0,
                  }),
                  button('↓', () => move(at + 1, at + 1 < items.length - 1 ? 'down' : 'up'), {
                    class: 'small',
                    'data-key': key('down'),
                    'aria-label': `Move ${label} down`,
                    title: 'Down',
                    disabled: at === items.length - 1,
                  }),
                  button(
                    'Remove',
                    () =>
                      set(
                        slot.list.filter((_, place) => place !== at),
                        `${slot.path}:add`,
                      ),
                    { class: 'small', 'data-key': key('remove'), 'aria-label': `Remove ${label}` },
                  ),
                ),
              ),
              kind
                ? headerForm(schema, kind, slot.at(at).key(name), name)
                : element('code', {}, JSON.stringify(item)),
              element('p', { class: 'problem' }),
            );
          }),
        ),
        items.length < HEADERS_MAX &&
          element(
            'div',
            { class: 'inline add' },
            element('label', { for: choice.id, class: 'hidden' }, `Kind of the new ${what}`),
            choice,
            button(
              `Add ${what}`,
              () =>
                set(
                  [
                    ...slot.list,
                    { [choice.value]: choice.value === 'payload' ? { text: 'hello' } : {} },
                  ],
                  `${slot.path}:add`,
                ),
              { 'data-key': `${slot.path}:add` },
            ),
          ),
      ];
    },
    { class: 'stack-form' },
  );
  return node;
}

function describe(schema: PlanSchema, part: Schema): string {
  const text = schema.resolve(part).description?.split(/[,:.]/)[0];
  return text ? ` – ${text}` : '';
}

/** Returns the header that usually follows. */
function following(items: readonly Json[], kinds: readonly string[]): string {
  const last = items.at(-1);
  const name = isObject(last) ? (Object.keys(last)[0] ?? '') : '';
  const next = {
    '': 'ethernet',
    ethernet: 'ipv4',
    vlan: 'ipv4',
    mpls: 'ipv4',
    ipv4: 'udp',
    ipv6: 'udp',
    udp: 'payload',
    tcp: 'payload',
    vxlan: 'ethernet',
    gre: 'ipv4',
  }[name];
  return next && kinds.includes(next)
    ? next
    : kinds.includes('payload')
      ? 'payload'
      : (kinds[0] ?? '');
}

/** Creates the forms of a header: its main fields and those with a value, then the others. */
function headerForm(schema: PlanSchema, part: Schema, slot: Slot, name: string): HTMLElement {
  const it = schema.resolve(part);
  const properties = Object.entries(it.properties ?? {});
  if (it.maxProperties === 1)
    return valueForm(schema, part, slot, { label: 'Content', isOptional: false });
  const main =
    MAIN[name]?.filter((key) => it.properties?.[key]) ??
    properties.slice(0, MAIN_COUNT).map(([key]) => key);
  const isMain = (key: string): boolean => main.includes(key) || slot.object[key] !== undefined;
  const first = [...properties]
    .filter(([key]) => isMain(key))
    .sort((a, b) => order(main, a[0]) - order(main, b[0]));
  const rest = properties.filter(([key]) => !isMain(key));
  const form = ([key, property]: [string, Schema]): Child => {
    if (schema.isField(property)) return fieldForm(schema, property, slot.key(key), words(key));
    if (schema.isStack(property)) {
      return element(
        'fieldset',
        {},
        element('legend', {}, words(key)),
        stackForm(schema, property, slot.key(key), key.replace(/s$/, '')),
      );
    }
    return valueForm(schema, property, slot.key(key), { label: words(key), isOptional: true });
  };
  const others = element('div');
  const details =
    rest.length > 0 &&
    element(
      'details',
      {
        class: 'more',
        on: {
          toggle: () => {
            if (others.childElementCount === 0) others.append(...(rest.map(form) as Node[]));
          },
        },
      },
      element('summary', {}, many(rest.length, 'more field')),
      others,
    );
  return element(
    'div',
    { class: 'fields-of-header' },
    first.map(form),
    it.patternProperties &&
      mapForm(
        schema,
        it.patternProperties,
        properties.map(([key]) => key),
        slot,
      ),
    details,
  );
}

function order(main: readonly string[], key: string): number {
  const at = main.indexOf(key);
  return at < 0 ? main.length : at;
}
