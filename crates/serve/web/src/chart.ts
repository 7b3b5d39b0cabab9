// Charts over time. uPlot draws; the legend and the readout are elements.

import uPlot from 'uplot';

import { element, freshId, replace } from './element.ts';
import { type Unit, withUnit } from './format.ts';
import { color, onThemeChange } from './theme.ts';

const FONT =
  '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
export const COLORS = 8;

export interface Series {
  label: string;
  /** Number of the color of the theme. */
  color: number;
  dash?: number[];
  values: ReadonlyArray<number | null>;
}

export interface ChartOptions {
  title: string;
  unit: Unit;
  /** Texts below the title. */
  note?: string;
  signal: AbortSignal;
}

export class Chart {
  readonly node: HTMLElement;
  private readonly box: HTMLElement;
  private readonly legend = element('div', { class: 'legend' });
  private readonly readout = element('div', { class: 'readout' });
  private uplot: uPlot | null = null;
  private series: readonly Series[] = [];
  private signature = '';
  private readonly hidden = new Set<string>();
  private place: number | null = null;

  constructor(private readonly options: ChartOptions) {
    const title = element('figcaption', { id: freshId('chart') }, options.title);
    this.box = element('div', {
      class: 'plot',
      tabindex: '0',
      role: 'img',
      on: { keydown: (event) => this.key(event) },
    });
    this.node = element(
      'figure',
      { class: 'chart' },
      title,
      options.note ? element('p', { class: 'hint' }, options.note) : null,
      this.box,
      this.readout,
      this.legend,
    );
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.box);
    onThemeChange(() => this.uplot?.redraw(false, true), options.signal);
    options.signal.addEventListener('abort', () => {
      observer.disconnect();
      this.uplot?.destroy();
      this.uplot = null;
    });
  }

  /** Shows series over `xs` in seconds. */
  update(xs: readonly number[], series: readonly Series[]): void {
    if (this.options.signal.aborted) return;
    const signature = JSON.stringify(series.map((it) => [it.label, it.color, it.dash]));
    this.series = series;
    const data = [xs, ...series.map((it) => it.values)] as uPlot.AlignedData;
    if (signature !== this.signature || !this.uplot) {
      this.signature = signature;
      this.uplot?.destroy();
      this.uplot = new uPlot(this.uplotOptions(), data, this.box);
      this.showLegend();
    } else {
      this.uplot.setData(data);
    }
    this.node.dataset['points'] = String(
      series.reduce((sum, it) => sum + it.values.filter((value) => value !== null).length, 0),
    );
    const last = series.slice(0, COLORS).map(
      (it) =>
        `${it.label} ${withUnit(
          it.values.findLast((value) => value !== null),
          this.options.unit,
        )}`,
    );
    this.box.setAttribute(
      'aria-label',
      `${this.options.title}. Now: ${last.join(', ') || 'no values'}. Arrow keys read the values.`,
    );
  }

  private size(): { width: number; height: number } {
    const width = Math.max(this.box.clientWidth, 200);
    return { width, height: width < 480 ? 200 : 240 };
  }

  private resize(): void {
    const { width, height } = this.size();
    if (this.uplot && (width !== this.uplot.width || height !== this.uplot.height))
      this.uplot.setSize({ width, height });
  }

  private uplotOptions(): uPlot.Options {
    const { unit } = this.options;
    const axis = {
      stroke: () => color('--muted'),
      font: FONT,
      grid: { stroke: () => color('--grid'), width: 1 },
      ticks: { stroke: () => color('--grid'), width: 1, size: 5 },
    };
    return {
      ...this.size(),
      padding: [10, 14, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false, setScale: false }, y: false, points: { show: false } },
      scales: {
        x: { time: false },
        y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(0, high ?? 0) * 1.1 || 1] },
      },
      axes: [
        {
          ...axis,
          size: 30,
          space: 60,
          values: (_, values) => values.map((value) => `${Number(value.toFixed(3))} s`),
        },
        {
          ...axis,
          space: 36,
          values: (_, values) => values.map((value) => withUnit(value, unit)),
          size: (u, values) => {
            u.ctx.save();
            u.ctx.font = FONT;
            const longest = Math.max(
              20,
              ...(values ?? []).map((text) => u.ctx.measureText(text).width),
            );
            u.ctx.restore();
            return Math.ceil(longest) + 16;
          },
        },
      ],
      series: [
        {},
        ...this.series.map((it): uPlot.Series => ({
          label: it.label,
          show: !this.hidden.has(it.label),
          stroke: () => color(`--c${it.color % COLORS}`),
          width: 2,
          ...(it.dash ? { dash: it.dash } : {}),
          points: { show: (u) => u.data[0].length < 3, size: 5 },
        })),
      ],
      hooks: { setCursor: [(u) => this.showValues(u)] },
    };
  }

  private showLegend(): void {
    const focused = this.legend.contains(document.activeElement)
      ? document.activeElement?.textContent
      : null;
    replace(
      this.legend,
      this.series.map((it, at) => {
        const node = element(
          'button',
          { type: 'button', 'aria-pressed': String(!this.hidden.has(it.label)) },
          swatch(it),
          it.label,
        );
        node.addEventListener('click', () => {
          const isShown = this.hidden.has(it.label);
          if (isShown) this.hidden.delete(it.label);
          else this.hidden.add(it.label);
          this.uplot?.setSeries(at + 1, { show: isShown });
          node.setAttribute('aria-pressed', String(isShown));
        });
        if (focused === it.label) queueMicrotask(() => node.focus());
        return node;
      }),
    );
  }

  private key(event: KeyboardEvent): void {
    const xs = this.uplot?.data[0];
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !xs?.length || !this.uplot) return;
    event.preventDefault();
    const next = (this.place ?? (step > 0 ? -1 : xs.length)) + step;
    this.place = Math.min(Math.max(next, 0), xs.length - 1);
    this.readout.setAttribute('aria-live', 'polite');
    this.uplot.setCursor({ left: this.uplot.valToPos(xs[this.place]!, 'x'), top: 0 });
  }

  private showValues(u: uPlot): void {
    const at = u.cursor.idx;
    const x = at === null || at === undefined ? undefined : u.data[0][at];
    if (x === undefined || (u.cursor.left ?? -1) < 0) {
      this.readout.textContent = '';
      return;
    }
    const values = this.series
      .filter((it) => !this.hidden.has(it.label))
      .slice(0, COLORS)
      .map((it) => `${it.label} ${withUnit(it.values[at!], this.options.unit)}`);
    this.readout.textContent = `${Number(x.toFixed(2))} s: ${values.join(' · ')}`;
  }
}

function swatch(it: Series): SVGElement {
  const name = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(name, 'svg');
  for (const [key, value] of Object.entries({
    viewBox: '0 0 24 10',
    width: 24,
    height: 10,
    'aria-hidden': 'true',
    class: `k${it.color % COLORS}`,
  })) {
    svg.setAttribute(key, String(value));
  }
  const line = document.createElementNS(name, 'line');
  for (const [key, value] of Object.entries({
    x1: 0,
    y1: 5,
    x2: 24,
    y2: 5,
    'stroke-dasharray': (it.dash ?? []).join(' '),
  })) {
    line.setAttribute(key, String(value));
  }
  svg.append(line);
  return svg;
}
