// Elements of the page. Texts become text nodes: no data is ever parsed as HTML.

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Listeners = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

export interface Attributes {
  on?: Listeners;
  /** Properties of form controls, which attributes only initialise. */
  value?: string | number | null;
  checked?: boolean;
  [attribute: string]: unknown;
}

/** Creates an element. Attributes that are false, null or undefined are left out. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  append(node, children);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on' || name === 'value' || name === 'checked') continue;
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(name, value === true ? '' : String(value));
  }
  // After the children: the value of a select needs its options.
  if (attributes.value !== undefined && attributes.value !== null) {
    (node as unknown as { value: string }).value = String(attributes.value);
  }
  if (attributes.checked !== undefined) {
    (node as unknown as { checked: boolean }).checked = attributes.checked;
  }
  for (const [event, listener] of Object.entries(attributes.on ?? {})) {
    node.addEventListener(event, listener as EventListener);
  }
  return node;
}

/** Appends children, in order. */
export function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child as readonly Child[]);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces all children of an element. */
export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** Replaces the children of an element, and puts the focus where it was, by `data-key`. */
export function rebuild(parent: Element, build: () => Child[]): void {
  const active = document.activeElement;
  const isInside = active instanceof HTMLElement && parent.contains(active);
  const key = isInside ? active.dataset['key'] : undefined;
  const selection =
    isInside && active instanceof HTMLInputElement && active.type === 'text'
      ? ([active.selectionStart, active.selectionEnd] as const)
      : null;
  replace(parent, ...build());
  if (key === undefined) return;
  const again = parent.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  again?.focus({ preventScroll: true });
  if (selection && again instanceof HTMLInputElement && again.type === 'text') {
    again.setSelectionRange(selection[0], selection[1]);
  }
}

let numbers = 0;

/** Returns an ID that no other element has. */
export function freshId(prefix: string): string {
  numbers += 1;
  return `${prefix}-${numbers}`;
}

/** Creates a button. */
export function button(
  label: string,
  onClick: (event: MouseEvent) => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  return element(
    'button',
    { type: 'button', ...attributes, on: { click: onClick, ...attributes.on } },
    label,
  );
}

/** Returns a text with its parts in backticks as code. */
export function marked(text: string): Child[] {
  return text.split('`').map((part, at) => (at % 2 === 1 ? element('code', {}, part) : part));
}

/** Creates a form control with its label, and an optional hint below it. */
export function labelled(
  label: string,
  control: HTMLElement,
  hint?: string,
  attributes: Attributes = {},
): HTMLElement {
  control.id ||= freshId('control');
  const note =
    hint === undefined
      ? null
      : element('span', { class: 'hint', id: `${control.id}-hint` }, marked(hint));
  if (note) control.setAttribute('aria-describedby', note.id);
  return element(
    'div',
    { class: 'control', ...attributes },
    element('label', { for: control.id }, label),
    control,
    note,
  );
}

/** Creates a check box with its label. */
export function checkbox(
  label: string,
  attributes: Attributes = {},
): { node: HTMLLabelElement; input: HTMLInputElement } {
  const input = element('input', { type: 'checkbox', ...attributes });
  return { node: element('label', { class: 'check' }, input, label), input };
}

/** Creates a select with options of value and label. */
export function select(
  options: ReadonlyArray<readonly [string, string]>,
  attributes: Attributes = {},
): HTMLSelectElement {
  return element(
    'select',
    attributes,
    options.map(([value, label]) => element('option', { value }, label)),
  );
}
