// A heat map of live delays: time from left to right, delays from bottom to top. The color of a cell
// is the share of the frames of its interval.

import type { Progress } from '../documents.ts';
import { element, replace, select } from '../element.ts';
import { count, duration, withUnit } from '../format.ts';
import { FONT, round, shade } from '../heatmap.ts';
import { color, onThemeChange } from '../theme.ts';
import { FIRST_NS } from './history.ts';

/** Flows whose histograms the page asks for. */
export const FLOWS_MAX = 64;
/** Intervals that the map keeps; older ones are dropped. */
const COLUMNS_MAX = 300;
const HEIGHT_PX = 240;
const LABELS_PX = 64;
const AXIS_PX = 22;
const ALL = '';
/** Range of all delays below 1 ns, which clocks that differ cause, and where its row begins. */
const BELOW_1 = 0;
const BELOW_1_START = 0.5;

/** Frames by the lower bound of their range of delays in nanoseconds, or by `BELOW_1`. */
type Counts = ReadonlyMap<number, number>;

interface Column {
  seconds: number;
  /** By name of the flow. */
  flows: ReadonlyMap<string, Counts>;
}

export class DelayMap {
  readonly node: HTMLElement;
  private columns: Column[] = [];
  private totals: ReadonlyMap<string, Counts> = new Map();
  private names: readonly string[] = [];
  private hasBegun = false;
  /** What the map shows: a column for each interval. */
  private shown: ReadonlyArray<{ seconds: number; counts: Counts; sum: number }> = [];
  private readonly canvas = element('canvas', { role: 'img' });
  private readonly box = element('div', { class: 'plot' }, this.canvas);
  private readonly readout = element('div', { class: 'readout' });
  private readonly flow = select([[ALL, 'all flows']], {
    class: 'layer',
    'aria-label': 'Flow of the delays',
    on: { change: () => this.update() },
  });

  constructor(private readonly signal: AbortSignal) {
    this.node = element(
      'figure',
      { class: 'chart heat', hidden: true },
      element('figcaption', {}, 'Delays over time', this.flow),
      this.box,
      this.readout,
    );
    this.canvas.addEventListener('mousemove', (event) => this.read(event));
    this.canvas.addEventListener('mouseleave', () => (this.readout.textContent = ''));
    const observer = new ResizeObserver(() => this.draw());
    observer.observe(this.box);
    onThemeChange(() => this.draw(), signal);
    signal.addEventListener('abort', () => observer.disconnect());
  }

  /** Adds the histograms of counters, as the difference to those before. */
  add(progress: Progress): void {
    // The first counters of a page that opens late are those of many intervals.
    const isLate = !this.hasBegun && progress.elapsed_ns >= FIRST_NS;
    this.hasBegun = true;
    const totals = new Map<string, Counts>();
    const flows = new Map<string, Counts>();
    for (const { name, delays } of progress.flows) {
      if (!delays) continue;
      const now = countsOf(delays.histogram);
      totals.set(name, now);
      const before = this.totals.get(name);
      const added = new Map<number, number>();
      for (const [bound, frames] of now) {
        const more = frames - (before?.get(bound) ?? 0);
        if (more > 0) added.set(bound, more);
      }
      if (added.size) flows.set(name, added);
    }
    // After the end the totals stay those of the last interval.
    if (!totals.size) return;
    this.totals = totals;
    if (!isLate) this.columns.push({ seconds: progress.elapsed_ns / 1e9, flows });
    if (this.columns.length > COLUMNS_MAX) this.columns = this.columns.slice(-COLUMNS_MAX);
    const names = [...totals.keys()];
    if (names.join('\n') === this.names.join('\n')) return;
    this.names = names;
    const measured = progress.flows.filter((it) => it.received).length;
    const isCut = measured > names.length;
    const all = isCut ? `first ${names.length} of ${count(measured)} flows` : 'all flows';
    const chosen = this.flow.value;
    replace(
      this.flow,
      element('option', { value: ALL }, all),
      names.map((name) => element('option', { value: name }, name)),
    );
    this.flow.value = names.includes(chosen) ? chosen : ALL;
    this.flow.hidden = names.length < 2;
  }

  update(): void {
    const chosen = this.flow.value;
    this.shown = this.columns.map(({ seconds, flows }) => {
      const counts = new Map<number, number>();
      for (const [name, own] of flows) {
        if (chosen !== ALL && name !== chosen) continue;
        for (const [bound, frames] of own) counts.set(bound, (counts.get(bound) ?? 0) + frames);
      }
      return { seconds, counts, sum: [...counts.values()].reduce((sum, it) => sum + it, 0) };
    });
    const cells = this.shown.reduce((sum, it) => sum + it.counts.size, 0);
    this.node.hidden = cells === 0;
    this.node.dataset['cells'] = String(cells);
    this.node.dataset['columns'] = String(this.shown.length);
    this.draw();
  }

  /** Returns the logarithms of the least and of the greatest bound. */
  private range(): readonly [number, number] | null {
    let low = Infinity;
    let high = -Infinity;
    for (const { counts } of this.shown) {
      for (const bound of counts.keys()) {
        low = Math.min(low, startOf(bound));
        high = Math.max(high, endOf(bound));
      }
    }
    return low < high ? [Math.log2(low), Math.log2(high)] : null;
  }

  private draw(): void {
    const width = this.box.clientWidth;
    const range = this.range();
    const context = this.canvas.getContext('2d');
    if (width === 0 || !range || !context || this.signal.aborted) return;
    const [low, high] = range;
    const ratio = devicePixelRatio;
    this.canvas.width = width * ratio;
    this.canvas.height = HEIGHT_PX * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${HEIGHT_PX}px`;
    context.scale(ratio, ratio);
    context.font = FONT;
    const plot = HEIGHT_PX - AXIS_PX;
    const place = (ns: number): number => plot * (1 - (Math.log2(ns) - low) / (high - low));
    const step = (width - LABELS_PX) / this.shown.length;
    context.fillStyle = color('--grid');
    context.fillRect(LABELS_PX, 0, width - LABELS_PX, plot);
    context.fillStyle = color('--heat');
    this.shown.forEach(({ counts, sum }, at) => {
      // Whole pixels: cells that overlap would have darker edges.
      const left = LABELS_PX + Math.round(at * step);
      const right = LABELS_PX + Math.round((at + 1) * step);
      for (const [bound, frames] of counts) {
        const [top, bottom] = [Math.round(place(endOf(bound))), Math.round(place(startOf(bound)))];
        context.globalAlpha = shade(frames / sum);
        context.fillRect(left, top, Math.max(1, right - left), Math.max(1, bottom - top));
      }
    });
    context.globalAlpha = 1;
    context.fillStyle = color('--muted');
    context.textAlign = 'right';
    const labels = 4;
    for (let tick = 0; tick <= labels; tick += 1) {
      const ns = 2 ** (low + (tick / labels) * (high - low));
      context.textBaseline = tick === 0 ? 'bottom' : tick === labels ? 'top' : 'middle';
      const text = ns >= 1 ? withUnit(round(ns), 'ns') : tick === 0 ? '≤ 0 ns' : '';
      context.fillText(text, LABELS_PX - 6, place(ns));
    }
    context.textBaseline = 'top';
    const [first, last] = [this.shown[0]!, this.shown.at(-1)!];
    context.textAlign = 'left';
    context.fillText(duration(first.seconds), LABELS_PX, plot + 6);
    context.textAlign = 'right';
    context.fillText(duration(last.seconds), width, plot + 6);
    this.canvas.setAttribute(
      'aria-label',
      `Delays over time: ${duration(first.seconds)} to ${duration(last.seconds)}, ` +
        `${delay(round(2 ** low))} to ${delay(round(2 ** high))}`,
    );
  }

  private read(event: MouseEvent): void {
    const range = this.range();
    const width = this.canvas.clientWidth - LABELS_PX;
    const at = Math.floor(((event.offsetX - LABELS_PX) / width) * this.shown.length);
    const column = this.shown[at];
    if (!range || !column) {
      this.readout.textContent = '';
      return;
    }
    const [low, high] = range;
    const part = 1 - event.offsetY / (HEIGHT_PX - AXIS_PX);
    const ns = 2 ** (low + part * (high - low));
    const found = [...column.counts].find(
      ([bound]) => ns >= startOf(bound) && ns < endOf(bound),
    );
    const when = `At ${duration(column.seconds)}`;
    this.readout.textContent = found
      ? `${when}, ${rangeOf(found[0])}: ` +
        `${count(found[1])} of ${count(column.sum)} frames`
      : `${when}: ${count(column.sum)} frames`;
  }
}

/** Returns the counts of a histogram. */
function countsOf(histogram: ReadonlyArray<readonly unknown[]>): Counts {
  const counts = new Map<number, number>();
  for (const [bound, frames] of histogram as ReadonlyArray<[number, number]>) {
    const at = bound < 1 ? BELOW_1 : bound;
    counts.set(at, (counts.get(at) ?? 0) + frames);
  }
  return counts;
}

/** Returns where the row of a range begins, in nanoseconds above zero. */
function startOf(bound: number): number {
  return bound === BELOW_1 ? BELOW_1_START : bound;
}

/** Returns the end of a range: a quarter of the power of two below it is its length. */
function endOf(bound: number): number {
  return bound < 4 ? bound + 1 : bound + 2 ** (Math.floor(Math.log2(bound)) - 2);
}

function delay(ns: number): string {
  return ns < 1 ? '0 ns or less' : withUnit(ns, 'ns');
}

function rangeOf(bound: number): string {
  return bound === BELOW_1 ? delay(bound) : `${delay(bound)} to ${delay(endOf(bound))}`;
}
