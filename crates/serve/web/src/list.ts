// Tables whose rows follow a changing list: rows that do not change keep their elements and focus.

import { type Attributes, type Child, element, rebuild } from './element.ts';

export interface Column {
  label: string;
  isNumber?: boolean;
  /** For readers of the screen alone. */
  isHidden?: boolean;
}

/**
 * Rows by key. A cell whose content stays the same keeps its elements, also while the user presses
 * a button in it; if its listeners must follow a change that it does not show, `data-state` has it.
 */
export class Rows<T> {
  readonly body = element('tbody');
  /** Row that counts the items without rows. */
  private readonly rest = element('tr', {}, element('td', { colspan: 20 }));
  private rows = new Map<string, { row: HTMLTableRowElement; signature: string }>();

  constructor(
    private readonly key: (item: T) => string,
    /** Returns the cells of an item. */
    private readonly cells: (item: T) => HTMLTableCellElement[],
    /** Returns a text that changes when the cells change. */
    private readonly signature: (item: T) => string = JSON.stringify,
    /** Rows that the table shows at most. */
    private readonly max = 1_000,
  ) {}

  update(all: readonly T[]): void {
    const items = all.slice(0, this.max);
    const rows = new Map<string, { row: HTMLTableRowElement; signature: string }>();
    for (const item of items) {
      const key = this.key(item);
      const signature = this.signature(item);
      const entry = this.rows.get(key) ?? {
        row: element('tr', { 'data-row': key }),
        signature: '',
      };
      if (entry.signature !== signature) {
        this.fill(entry.row, this.cells(item));
        entry.signature = signature;
      }
      rows.set(key, entry);
    }
    for (const [key, entry] of this.rows) if (!rows.has(key)) entry.row.remove();
    this.rows = rows;
    let at: ChildNode | null = this.body.firstChild;
    for (const { row } of rows.values()) {
      if (row === at) at = at.nextSibling;
      else this.body.insertBefore(row, at);
    }
    const rest = all.length - items.length;
    this.rest.firstElementChild!.textContent = `and ${rest.toLocaleString('en')} more`;
    if (rest > 0) this.body.append(this.rest);
    else this.rest.remove();
  }

  private fill(row: HTMLTableRowElement, cells: readonly HTMLTableCellElement[]): void {
    const old = [...row.cells];
    if (old.length !== cells.length) {
      row.replaceChildren(...cells);
      return;
    }
    cells.forEach((cell, at) => {
      const before = old[at]!;
      if (before.isEqualNode(cell)) return;
      if (before.dataset['state'] === cell.dataset['state']) {
        rebuild(before, () => [...cell.childNodes]);
      } else {
        // The focus would be lost with the old cell.
        rebuild(row, () => [...row.cells].map((it) => (it === before ? cell : it)));
      }
    });
  }
}

/** Creates a table in a box that scrolls if it is too wide. Narrow pages show rows as cards. */
export function table(
  caption: string,
  columns: readonly Column[],
  body: HTMLElement,
  attributes: Attributes = {},
): HTMLElement {
  const heads = columns.map(({ label, isNumber, isHidden }) =>
    element(
      'th',
      { scope: 'col', class: isNumber ? 'n' : null },
      isHidden ? element('span', { class: 'hidden' }, label) : label,
    ),
  );
  return element(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption, ...attributes },
    element(
      'table',
      { class: 'cards' },
      element('caption', { class: 'hidden' }, caption),
      element('thead', {}, element('tr', {}, heads)),
      body,
    ),
  );
}

/** Creates a cell; `label` names it where rows are cards. */
export function cell(label: string, ...content: Child[]): HTMLTableCellElement {
  return element('td', { 'data-label': label }, content);
}

/** Creates a cell with a number. */
export function numberCell(label: string, ...content: Child[]): HTMLTableCellElement {
  return element('td', { 'data-label': label, class: 'n' }, content);
}
