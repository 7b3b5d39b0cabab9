// The frames of a flow: bytes and fields, each with the other's highlight.

import type { FlowFrames, Frame } from '../documents.ts';
import { button, element, replace } from '../element.ts';
import { count, withUnit } from '../format.ts';
import { words } from './schema.ts';

/** Bytes of a row; a narrow page has half of them. */
const ROW_BYTES = 16;
const NARROW = matchMedia('(max-width: 640px)');
/** Longest part of a frame that is drawn. */
const BYTES_MAX = 2_048;

interface Item {
  label: string;
  value: string;
  /** First byte and the one behind the last. */
  from: number;
  to: number;
  header: number;
  field: string | null;
  node: HTMLElement;
}

export class Preview {
  readonly node: HTMLElement;
  /** Called when the user activates a field: index of the header, protocol, and field. */
  onField: ((header: number, protocol: string, field: string) => void) | null = null;
  private readonly state = element('p', { class: 'hint', role: 'status' });
  private readonly title = element('span', { class: 'frame-title' });
  private readonly hex = element('div', {
    class: 'hex',
    tabindex: '0',
    role: 'group',
    'aria-label': 'Bytes of the frame; arrow keys move',
  });
  private readonly tree = element('ul', {
    class: 'tree',
    role: 'tree',
    'aria-label': 'Fields of the frame',
  });
  private readonly readout = element('p', { class: 'readout', 'aria-live': 'polite' });
  private readonly content: HTMLElement;
  private readonly before: HTMLButtonElement;
  private readonly after: HTMLButtonElement;
  private frames: readonly Frame[] = [];
  private place = 0;
  private items: Item[] = [];
  private cells: Array<[HTMLElement, HTMLElement]> = [];
  private cursor = 0;
  private rowBytes = ROW_BYTES;

  constructor() {
    this.before = button('‹', () => this.step(-1), {
      class: 'small',
      'aria-label': 'Frame before',
    });
    this.after = button('›', () => this.step(1), { class: 'small', 'aria-label': 'Next frame' });
    this.content = element(
      'div',
      {},
      element('div', { class: 'frame-choice' }, this.before, this.title, this.after),
      this.hex,
      this.readout,
      this.tree,
    );
    this.node = element(
      'section',
      { class: 'preview', 'aria-label': 'Frames' },
      element('h2', {}, 'Frames'),
      this.state,
      this.content,
    );
    this.content.hidden = true;
    this.hex.addEventListener('keydown', (event) => this.hexKey(event));
    this.hex.addEventListener('focus', () => this.showByte(this.cursor));
    this.hex.addEventListener('mouseover', (event) => {
      const at = (event.target as HTMLElement).dataset['at'];
      if (at !== undefined) this.showByte(Number(at));
    });
    for (const node of [this.hex, this.tree])
      node.addEventListener('mouseleave', () => this.highlight(null));
    this.hex.addEventListener('blur', () => this.highlight(null));
    this.tree.addEventListener('keydown', (event) => this.treeKey(event));
    this.tree.addEventListener('focusout', () => this.highlight(null));
  }

  /** Shows the frames of a flow. */
  show(flow: FlowFrames | null): void {
    this.frames = flow?.frames ?? [];
    this.place = Math.min(this.place, Math.max(0, this.frames.length - 1));
    this.state.textContent = flow ? (this.frames.length ? '' : 'The flow has no frames.') : '';
    this.state.hidden = !this.state.textContent;
    this.draw();
  }

  /** Shows why there are no frames. */
  fail(text: string): void {
    this.state.textContent = text;
    this.state.hidden = false;
    this.content.hidden = true;
    this.node.dataset['frames'] = '0';
  }

  /** Highlights the bytes of a field of the form. */
  highlightField(header: number, protocol: string, field: string): void {
    const item = this.items.find((it) => it.header === header && it.field === field);
    if (item && this.frames[this.place]?.headers[header]?.protocol === protocol)
      this.highlight(item);
    else this.highlight(null);
  }

  private step(by: number): void {
    this.place = Math.min(Math.max(0, this.place + by), this.frames.length - 1);
    this.draw();
  }

  private draw(): void {
    const frame = this.frames[this.place];
    this.content.hidden = !frame;
    this.node.dataset['frames'] = String(this.frames.length);
    if (!frame) return;
    const length = frame.bytes.length / 2;
    const at =
      frame.time_ns === null || frame.time_ns === undefined
        ? 'at full speed'
        : `at ${withUnit(frame.time_ns, 'ns')}`;
    const place = `${this.place + 1} of the first ${this.frames.length}`;
    this.title.textContent = `Frame ${place}, ${at}, ${count(length + 4)} bytes with FCS`;
    this.before.disabled = this.place === 0;
    this.after.disabled = this.place === this.frames.length - 1;
    this.drawBytes(frame);
    this.drawTree(frame);
    this.cursor = Math.min(this.cursor, this.cells.length - 1);
  }

  private drawBytes(frame: Frame): void {
    this.cells = [];
    this.rowBytes = NARROW.matches ? ROW_BYTES / 2 : ROW_BYTES;
    const width = this.rowBytes;
    const bytes = Array.from({ length: Math.min(frame.bytes.length / 2, BYTES_MAX) }, (_, at) =>
      frame.bytes.slice(2 * at, 2 * at + 2),
    );
    const rows: HTMLElement[] = [];
    for (let start = 0; start < bytes.length; start += width) {
      const part = bytes.slice(start, start + width);
      const hex = part.map((byte, at) => element('span', { 'data-at': start + at }, byte));
      const ascii = part.map((byte, at) => {
        const code = parseInt(byte, 16);
        return element(
          'span',
          { 'data-at': start + at },
          code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : '·',
        );
      });
      hex.forEach((node, at) => this.cells.push([node, ascii[at]!]));
      rows.push(
        element(
          'div',
          { class: 'hex-row' },
          element('span', { class: 'offset' }, start.toString(16).padStart(4, '0')),
          element(
            'span',
            { class: 'bytes' },
            hex.flatMap((node, at) => [at > 0 && at % 8 === 0 ? '  ' : at > 0 ? ' ' : '', node]),
            '   '.repeat(width - part.length),
          ),
          element('span', { class: 'ascii', 'aria-hidden': 'true' }, ascii),
        ),
      );
    }
    const rest = frame.bytes.length / 2 - bytes.length;
    replace(this.hex, rows, rest > 0 && element('div', {}, `and ${count(rest)} bytes more`));
  }

  private drawTree(frame: Frame): void {
    const focused = this.tree.contains(document.activeElement)
      ? this.items.findIndex((it) => it.node === document.activeElement)
      : -1;
    this.items = [];
    const add = (
      item: Omit<Item, 'node'>,
      level: number,
      ...content: Array<Node | string>
    ): HTMLElement => {
      const node = element(
        'li',
        {
          role: 'treeitem',
          'aria-level': level,
          tabindex: '-1',
          class: level === 1 ? 'tree-header' : 'tree-field',
        },
        content,
      );
      const whole: Item = { ...item, node };
      node.addEventListener('mouseover', (event) => {
        event.stopPropagation();
        this.highlight(whole);
      });
      node.addEventListener('focus', () => this.highlight(whole));
      node.addEventListener('click', (event) => {
        event.stopPropagation();
        this.activate(whole);
      });
      this.items.push(whole);
      return node;
    };
    const nodes = frame.headers.flatMap((header, at) => {
      const range = { from: header.offset, to: header.offset + header.length };
      const head = add(
        { ...range, label: words(header.protocol), value: '', header: at, field: null },
        1,
        words(header.protocol),
        element('span', { class: 'sub' }, ` ${header.length} bytes from ${header.offset}`),
      );
      const fields = header.fields.map((field) =>
        add(
          {
            from: Math.floor(field.bit_offset / 8),
            to: Math.ceil((field.bit_offset + field.bits) / 8),
            label: `${words(header.protocol)} ${words(field.name)}`,
            value: field.value,
            header: at,
            field: field.name,
          },
          2,
          element('span', { class: 'tree-name' }, words(field.name)),
          element('span', { class: 'tree-value' }, field.value),
        ),
      );
      return [head, ...fields];
    });
    replace(this.tree, nodes);
    const current = this.items[focused] ?? this.items[0];
    if (current) current.node.tabIndex = 0;
    if (focused >= 0) current?.node.focus({ preventScroll: true });
  }

  private activate(item: Item): void {
    const protocol = this.frames[this.place]?.headers[item.header]?.protocol;
    if (item.field !== null && protocol) this.onField?.(item.header, protocol, item.field);
  }

  private treeKey(event: KeyboardEvent): void {
    const at = this.items.findIndex((it) => it.node === document.activeElement);
    if (at < 0) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.activate(this.items[at]!);
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = this.items[Math.min(Math.max(0, at + step), this.items.length - 1)]!;
    this.items[at]!.node.tabIndex = -1;
    next.node.tabIndex = 0;
    next.node.focus();
  }

  private hexKey(event: KeyboardEvent): void {
    const step = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: this.rowBytes,
      ArrowUp: -this.rowBytes,
      Home: -Infinity,
      End: Infinity,
    }[event.key];
    if (step === undefined || !this.cells.length) return;
    event.preventDefault();
    this.cursor = Math.min(Math.max(0, this.cursor + step), this.cells.length - 1);
    this.showByte(this.cursor);
  }

  /** Highlights the field of a byte. */
  private showByte(at: number): void {
    const inside = this.items.filter((it) => it.from <= at && at < it.to);
    // The field, or the header if no field has the byte.
    const item = inside.find((it) => it.field !== null) ?? inside[0] ?? null;
    this.highlight(item);
    const cell = this.cells[at];
    if (!cell) return;
    cell.forEach((node) => node.classList.add('cursor'));
    const names = inside.filter((it) => it.field !== null).map((it) => `${it.label} ${it.value}`);
    const label = names.join(', ') || inside[0]?.label || '';
    this.readout.textContent = `Byte ${at}, 0x${cell[0].textContent}: ${label}`;
    // The tree alone scrolls; the page stays where it is.
    if (item) {
      const top = item.node.offsetTop - this.tree.offsetTop;
      if (top < this.tree.scrollTop || top > this.tree.scrollTop + this.tree.clientHeight - 24)
        this.tree.scrollTop = top - 24;
    }
  }

  private highlight(item: Item | null): void {
    for (const cell of this.cells) for (const node of cell) node.classList.remove('on', 'cursor');
    for (const it of this.items) it.node.classList.toggle('on', it === item);
    if (!item) {
      this.readout.textContent = '';
      return;
    }
    for (const cell of this.cells.slice(item.from, item.to))
      for (const node of cell) node.classList.add('on');
    this.readout.textContent = `Bytes ${item.from} to ${item.to - 1}: ${item.label} ${item.value}`;
  }
}
