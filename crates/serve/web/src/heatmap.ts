// A heat map of delays: a row for each flow, a column for each range of delays.

import { element } from './element.ts';
import { withUnit } from './format.ts';
import { color, onThemeChange } from './theme.ts';

export interface HeatRow {
  label: string;
  /** Lower bound in nanoseconds and count of each bucket that is not empty. */
  buckets: ReadonlyArray<readonly [number, number]>;
}

const COLUMNS = 96;
const ROW_PX = 26;
export const FONT = '12px system-ui, sans-serif';

/** Creates the map. The color of a cell is the share of the frames of its row. */
export function heatMap(title: string, rows: readonly HeatRow[], signal: AbortSignal): HTMLElement {
  const bounds = rows.flatMap((row) => row.buckets.map(([bound]) => Math.max(bound, 1)));
  const low = Math.log10(Math.min(...bounds));
  const high = Math.max(Math.log10(Math.max(...bounds)), low + 0.3);
  const cells = rows.map((row) => {
    const counts = new Array<number>(COLUMNS).fill(0);
    let total = 0;
    for (const [bound, count] of row.buckets) {
      const at = Math.floor(
        ((Math.log10(Math.max(bound, 1)) - low) / (high - low)) * (COLUMNS - 1),
      );
      counts[at] = (counts[at] ?? 0) + count;
      total += count;
    }
    return counts.map((count) => (total > 0 ? count / total : 0));
  });
  const canvas = element('canvas', {
    role: 'img',
    'aria-label': `${title}: a row for each flow, the delay from left to right`,
  });
  const readout = element('div', { class: 'readout' });
  const box = element('div', { class: 'plot' }, canvas);

  const draw = (): void => {
    const width = box.clientWidth;
    if (width === 0) return;
    const ratio = devicePixelRatio;
    const height = rows.length * ROW_PX + 26;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext('2d');
    if (!context) return;
    context.scale(ratio, ratio);
    context.font = FONT;
    const labels = labelWidth(width);
    const step = (width - labels) / COLUMNS;
    cells.forEach((row, at) => {
      context.globalAlpha = 1;
      context.fillStyle = color('--text');
      context.textBaseline = 'middle';
      context.textAlign = 'left';
      context.fillText(cut(context, rows[at]!.label, labels - 8), 0, at * ROW_PX + ROW_PX / 2);
      context.fillStyle = color('--grid');
      context.fillRect(labels, at * ROW_PX + 2, width - labels, ROW_PX - 4);
      context.fillStyle = color('--heat');
      row.forEach((share, column) => {
        if (share === 0) return;
        context.globalAlpha = shade(share);
        context.fillRect(labels + column * step, at * ROW_PX + 2, Math.ceil(step), ROW_PX - 4);
      });
    });
    context.globalAlpha = 1;
    context.fillStyle = color('--muted');
    context.textBaseline = 'top';
    const ticks = width < 480 ? 3 : 6;
    for (let tick = 0; tick < ticks; tick += 1) {
      const part = tick / (ticks - 1);
      context.textAlign = tick === 0 ? 'left' : tick === ticks - 1 ? 'right' : 'center';
      context.fillText(
        withUnit(round(10 ** (low + part * (high - low))), 'ns'),
        labels + part * (width - labels),
        rows.length * ROW_PX + 6,
      );
    }
  };
  canvas.addEventListener('mousemove', (event) => {
    const labels = labelWidth(canvas.clientWidth);
    const row = Math.floor(event.offsetY / ROW_PX);
    const column = Math.floor(((event.offsetX - labels) / (canvas.clientWidth - labels)) * COLUMNS);
    const share = cells[row]?.[column];
    if (share === undefined) {
      readout.textContent = '';
      return;
    }
    const bound = (at: number): string =>
      withUnit(round(10 ** (low + (at / (COLUMNS - 1)) * (high - low))), 'ns');
    const range = `${bound(column)} to ${bound(column + 1)}`;
    const part = Number((share * 100).toPrecision(3));
    readout.textContent = `${rows[row]!.label}, ${range}: ${part} % of the frames`;
  });
  const observer = new ResizeObserver(draw);
  observer.observe(box);
  onThemeChange(draw, signal);
  signal.addEventListener('abort', () => observer.disconnect());
  return element('figure', { class: 'chart heat' }, element('figcaption', {}, title), box, readout);
}

/** Returns the opacity of a share of all frames. Tails of a millionth must remain visible. */
export function shade(share: number): number {
  return Math.min(1, 0.18 + 0.82 * (1 + Math.log10(Math.max(share, 1e-6)) / 6) ** 2);
}

function labelWidth(width: number): number {
  return Math.min(140, width * 0.28);
}

export function round(value: number): number {
  return Number(value.toPrecision(2));
}

function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}
