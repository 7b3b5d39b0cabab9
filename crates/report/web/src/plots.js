// Plots: uPlot draws the axes, the lines and the cursor; the marks are drawn here.

import uPlot from 'uplot';
import { percentile, plain, unitFor, withUnit } from './format.js';

const COLORS = 8;
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const PRINT_WIDTH = 660;
// Angle in degrees of names that do not fit beside each other.
const SLOPE = 40;

export function makePlots({ runs, plots }) {
  const palette = new Palette();
  const labels = new Map();
  const made = plots.map((plot, number) => {
    const figure = document.querySelector(`figure[data-plot="${number}"]`);
    return new Plot(figure, plot, { runs, labels }, palette);
  });
  return {
    recolor() {
      palette.read();
      made.forEach((plot) => plot.redraw());
    },
    setPrint(isPrint) {
      palette.read();
      made.forEach((plot) => plot.setPrint(isPrint));
    },
  };
}

/** Colors of the theme, read from the style. */
class Palette {
  constructor() {
    this.read();
  }

  read() {
    // The color of an element is without `light-dark()`, which a canvas does not take.
    const probe = document.createElement('span');
    probe.hidden = true;
    document.body.append(probe);
    const color = (name) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    this.text = color('--muted');
    this.grid = color('--grid');
    this.back = color('--panel');
    this.reference = color('--reference');
    this.series = Array.from({ length: COLORS }, (_, number) => color(`--c${number}`));
    probe.remove();
  }

  of(place) {
    return place === null ? this.reference : this.series[place % COLORS];
  }
}

class Plot {
  constructor(figure, plot, report, palette) {
    Object.assign(this, { figure, plot, palette });
    this.box = figure.querySelector('.plot');
    this.readout = figure.querySelector('.readout');
    this.isPrint = false;
    this.series = prepare(plot, report);
    this.xUnit = axisUnit(plot.x, this.series.flatMap((it) => it.xs));
    this.yUnit = axisUnit(plot.y, this.series.flatMap((it) => it.ys.concat(it.lows)));
    const tables = this.series.map((it) => [it.xs, it.ys]);
    this.uplot = new uPlot(this.options(), uPlot.join(tables), this.box);
    this.makeLegend();
    this.box.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.box);
  }

  size() {
    const width = this.isPrint
      ? Math.min(PRINT_WIDTH, this.box.clientWidth || PRINT_WIDTH)
      : this.box.clientWidth;
    return { width: Math.max(width, 200), height: width < 480 ? 260 : 320 };
  }

  resize() {
    const { width, height } = this.size();
    if (width !== this.uplot.width || height !== this.uplot.height) this.uplot.setSize({ width, height });
  }

  redraw() {
    this.uplot.redraw(false, true);
  }

  setPrint(isPrint) {
    this.isPrint = isPrint;
    this.resize();
    this.redraw();
  }

  options() {
    const { plot, palette } = this;
    return {
      ...this.size(),
      // Half of a label of a high percentile is beyond the end of its axis.
      padding: [12, plot.x.scale === 'quantile' ? 36 : 16, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false, setScale: false }, points: { show: false }, y: false },
      scales: {
        x: scale(plot.x, this.extent('x'), 0),
        // The labels of marks are above the points.
        y: scale(plot.y, this.extent('y'), Math.min(plot.marks.length, 4) * 0.08),
      },
      axes: [this.axis(plot.x, this.xUnit, false), this.axis(plot.y, this.yUnit, true)],
      series: [{}, ...this.series.map((it) => this.uplotSeries(it, palette))],
      hooks: {
        drawClear: [() => { this.drawn = 0; }],
        drawSeries: [(u, place) => this.drawMarks(u, place)],
        draw: [(u) => this.drawLines(u)],
        setCursor: [(u) => this.showValues(u)],
      },
    };
  }

  /** Returns the lowest and the highest value of all series. */
  extent(which) {
    const marks = which === 'x' ? this.plot.marks.map((mark) => mark.x) : [];
    const values = this.series.flatMap((it) => (which === 'x' ? it.xs : it.ys.concat(it.lows)));
    const known = values.concat(marks).filter((value) => value !== null && value !== undefined);
    return known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
  }

  uplotSeries(it, palette) {
    const paths = {
      steps: uPlot.paths.stepped({ align: 1 }),
      steps_before: uPlot.paths.stepped({ align: -1 }),
      plain: uPlot.paths.linear(),
      line: uPlot.paths.linear(),
      reference: uPlot.paths.linear(),
    }[it.style];
    return {
      label: it.label,
      stroke: () => palette.of(it.color),
      width: it.style === 'reference' ? 1.5 : 2,
      dash: it.dash,
      // Marks alone have no line.
      paths: paths ?? (() => null),
      points: { show: false },
    };
  }

  axis(axis, unit, isVertical) {
    const { palette } = this;
    const label = axis.scale === 'linear' && unit.name ? `${axis.label} (${unit.name})` : axis.label;
    const text = (value) => {
      if (value === null) return '';
      if (axis.scale === 'categories') return axis.categories[value] ?? '';
      if (axis.scale === 'quantile') return percentile(value);
      if (axis.scale === 'log') return withUnit(value, axis.unit);
      return plain(value / unit.divisor);
    };
    return {
      label,
      labelSize: 22,
      labelGap: 2,
      labelFont: `12px ${FONT}`,
      font: `12px ${FONT}`,
      stroke: () => palette.text,
      grid: { stroke: () => palette.grid, width: 1, show: isVertical || axis.scale !== 'categories' },
      ticks: { stroke: () => palette.grid, width: 1, size: 5 },
      gap: 4,
      space: isVertical ? 32 : 56,
      // uPlot would drop labels of logarithmic axes; `splits` leaves room for all.
      filter: (u, values) => values,
      ...splits(axis, unit),
      values: (u, values) => values.map(text),
      size: isVertical ? (u, values) => width(u, values) : (u, values) => bottom(axis, u, values),
      rotate: (u, values) => (!isVertical && isCrowded(axis, u, values) ? -SLOPE : 0),
    };
  }

  /** Draws the marks of a series above its line. */
  drawMarks(u, place) {
    const it = this.series[place - 1];
    if (!it || !u.series[place].show) return;
    if (it.style === 'reference' || it.style === 'plain' || it.style.startsWith('steps')) {
      this.drawn += it.ys.filter((y) => y !== null).length;
      return;
    }
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const color = this.palette.of(it.color);
    const unitWidth = Math.abs(u.valToPos(1, 'x', true) - u.valToPos(0, 'x', true));
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left - 6 * ratio, u.bbox.top - 6 * ratio, u.bbox.width + 12 * ratio, u.bbox.height + 12 * ratio);
    ctx.clip();
    ctx.strokeStyle = color;
    ctx.lineWidth = 2 * ratio;
    // The dash of the line is not for the marks.
    ctx.setLineDash([]);
    it.xs.forEach((value, number) => {
      if (it.ys[number] === null) return;
      this.drawn += 1;
      const x = u.valToPos(value, 'x', true);
      const y = u.valToPos(it.ys[number], 'y', true);
      ctx.fillStyle = it.hollow[number] ? this.palette.back : color;
      ctx.beginPath();
      if (it.style === 'line') {
        ctx.arc(x, y, 3.5 * ratio, 0, 2 * Math.PI);
      } else if (it.style === 'stems') {
        ctx.lineWidth = 1.5 * ratio;
        ctx.moveTo(x, u.bbox.top + u.bbox.height);
        ctx.lineTo(x, y);
      } else {
        const isRange = it.style === 'ranges';
        const size = Math.min(unitWidth * it.width, (isRange ? 22 : 44) * ratio);
        const bottom = isRange ? u.valToPos(it.lows[number], 'y', true) : u.valToPos(0, 'y', true);
        // Bounds within 1 % are a pixel apart.
        const height = Math.max(bottom - y, (isRange ? 5 : 1) * ratio);
        ctx.rect(x - size / 2, isRange ? (y + bottom) / 2 - height / 2 : y, size, height);
      }
      if (it.style !== 'stems') ctx.fill();
      if (it.style !== 'bars' || it.hollow[number]) ctx.stroke();
    });
    ctx.restore();
  }

  /** Draws the vertical marks, and counts what the canvas shows. */
  drawLines(u) {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${12 * ratio}px ${FONT}`;
    ctx.textAlign = 'left';
    ctx.textBaseline = 'top';
    this.plot.marks.forEach((mark, number) => {
      const x = Math.round(u.valToPos(mark.x, 'x', true));
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      const color = mark.run === null ? this.palette.text : this.palette.of(mark.color ?? mark.run);
      ctx.strokeStyle = color;
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash([6 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const length = ctx.measureText(mark.label).width;
      const isLeft = x + length + 12 * ratio > bbox.left + bbox.width;
      const left = Math.max(isLeft ? x - length - 6 * ratio : x + 6 * ratio, bbox.left);
      const top = bbox.top + (6 + number * 19) * ratio;
      ctx.fillStyle = this.palette.back;
      ctx.fillRect(left - 3 * ratio, top - 2 * ratio, length + 6 * ratio, 17 * ratio);
      ctx.fillStyle = color;
      ctx.fillText(mark.label, left, top);
      this.drawn += 1;
    });
    ctx.restore();
    this.figure.dataset.points = this.drawn;
  }

  makeLegend() {
    const legend = this.figure.querySelector('.legend');
    this.series.forEach((it, number) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.setAttribute('aria-pressed', 'true');
      button.append(swatch(it), document.createTextNode(it.label));
      button.addEventListener('click', () => {
        const isShown = !this.uplot.series[number + 1].show;
        this.uplot.setSeries(number + 1, { show: isShown });
        button.setAttribute('aria-pressed', String(isShown));
      });
      legend.append(button);
    });
    // One series without a name needs no legend.
    if (this.series.length === 1 && !this.series[0].label) legend.hidden = true;
  }

  key(event) {
    const xs = this.uplot.data[0];
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !xs.length) return;
    event.preventDefault();
    const next = (this.place ?? (step > 0 ? -1 : xs.length)) + step;
    this.place = Math.min(Math.max(next, 0), xs.length - 1);
    this.readout.setAttribute('aria-live', 'polite');
    this.uplot.setCursor({ left: this.uplot.valToPos(xs[this.place], 'x'), top: 0 });
  }

  /** Shows the values below the cursor as text. */
  showValues(u) {
    const { left } = u.cursor;
    if (left === undefined || left < 0) {
      this.readout.textContent = '';
      return;
    }
    const value = u.posToVal(left, 'x');
    const parts = [];
    let at = null;
    this.series.forEach((it, number) => {
      if (!u.series[number + 1].show || parts.length >= 8) return;
      const nearest = near(it, value, u);
      if (nearest === null) return;
      at ??= it.xs[nearest];
      const low = it.lows[nearest];
      const range = low === null || low === undefined ? '' : `${withUnit(low, this.plot.y.unit)} to `;
      parts.push(`${it.label || this.plot.y.label}: ${range}${withUnit(it.ys[nearest], this.plot.y.unit)}`);
    });
    const { x } = this.plot;
    const name = {
      categories: () => x.categories[Math.round(at)] ?? '',
      quantile: () => percentile(at),
    }[x.scale] ?? (() => withUnit(at, x.unit));
    this.readout.textContent = at === null ? '' : `${x.label} ${name()} – ${parts.join(' · ')}`;
  }
}

/** Returns the point of a series that is nearest to a value, within a few pixels on the axis. */
function near(it, value, u) {
  let best = null;
  let least = 24;
  const pixel = u.valToPos(value, 'x');
  it.xs.forEach((x, number) => {
    if (it.ys[number] === null) return;
    const distance = Math.abs(u.valToPos(x, 'x') - pixel);
    if (distance < least) [best, least] = [number, distance];
  });
  return best;
}

/** Returns the series with a color, a dash and, on categories, a place beside the others. */
function prepare(plot, { runs, labels }) {
  const grouped = plot.series.filter((it) => it.style === 'bars' || it.style === 'ranges');
  const ofRun = new Map();
  const used = new Map();
  return plot.series.map((series) => {
    const isReference = series.run === null;
    const inRun = ofRun.get(series.run) ?? 0;
    if (!isReference) ofRun.set(series.run, inRun + 1);
    // Several runs: a color for each run, a dash for each series. One run: a color for each series,
    // the same in all plots if it is free.
    const color = isReference ? null : runs > 1 ? series.run : colorOf(series.label, labels, used);
    const turn = runs > 1 ? inRun : (used.get(color) ?? 1) - 1;
    const dash = isReference ? [4, 4] : DASHES[turn % DASHES.length];
    const group = grouped.indexOf(series);
    const width = group < 0 ? 0 : 0.8 / grouped.length;
    const offset = group < 0 ? 0 : (group - (grouped.length - 1) / 2) * width;
    return {
      label: series.label,
      style: series.style,
      color,
      dash,
      width: width * 0.85,
      xs: series.points.map((point) => point[0] + offset),
      ys: series.points.map((point) => point[1]),
      lows: series.points.map((point) => point[2] ?? null),
      hollow: series.points.map((point) => Boolean(point[3])),
    };
  });
}

/** Returns the color that a label has in other plots, or the one that this plot uses least. */
function colorOf(label, labels, used) {
  const count = (color) => used.get(color) ?? 0;
  const least = Math.min(...Array.from({ length: COLORS }, (_, color) => count(color)));
  let color = labels.get(label);
  if (color === undefined || count(color) > least) {
    color = Array.from({ length: COLORS }, (_, number) => number).find((it) => count(it) === least);
  }
  if (!labels.has(label)) labels.set(label, color);
  used.set(color, count(color) + 1);
  return color;
}

/** Returns the unit of a linear axis. */
function axisUnit(axis, values) {
  const sizes = values.filter((value) => value !== null).map(Math.abs);
  const range = axis.range ? Math.abs(axis.range[1]) : 0;
  return unitFor(axis.unit, Math.max(range, ...sizes));
}

function scale(axis, [low, high], above) {
  if (axis.scale === 'categories') {
    return { time: false, range: [-0.5, Math.max(axis.categories.length, 1) - 0.5] };
  }
  if (axis.scale === 'quantile') return { time: false, distr: 3, log: 10, range: [1, Math.max(high, 10)] };
  if (axis.scale === 'log') {
    // Less than a decade would have too few labels.
    const [from, to] = high / low < 4 ? [low / 2, high * 2] : [low / 1.15, high * 1.15];
    const most = axis.unit === 'percent' && high <= 100 ? 115 : Infinity;
    return { time: false, distr: 3, log: 10, range: [from, Math.min(to, most)] };
  }
  if (axis.range) return { time: false, range: axis.range };
  const height = high - Math.min(low, 0) || 20;
  return { time: false, range: [low < 0 ? low - height * 0.05 : 0, high + height * (0.05 + above)] };
}

function splits(axis, unit) {
  if (axis.scale === 'categories') {
    return { splits: () => axis.categories.map((_, number) => number) };
  }
  if (axis.scale === 'quantile') {
    return {
      splits: (u, number, low, high) => {
        const room = Math.max(2, Math.floor(u.width / 90));
        const all = decades(1, high, Math.max(1, Math.ceil(Math.log10(high) / room)));
        return high > 1e4 ? all : all.concat([2]).sort((a, b) => a - b);
      },
    };
  }
  if (axis.scale === 'log') {
    return {
      splits: (u, number, low, high) => {
        const count = Math.log10(high / low);
        const room = (number === 0 ? u.width / 70 : u.height / 34) || 4;
        const steps = count * 3 <= room ? [1, 2, 5] : [1];
        const all = decades(low, high, Math.max(1, Math.ceil(count / room)));
        return all.flatMap((value) => steps.map((step) => value * step)).filter((it) => it >= low && it <= high);
      },
    };
  }
  // Round numbers in the unit that the axis shows.
  return { incrs: [1, 2, 2.5, 5].flatMap((step) => powers().map((power) => step * power * unit.divisor)).sort((a, b) => a - b) };
}

function powers() {
  return Array.from({ length: 13 }, (_, number) => 10 ** (number - 6));
}

/** Returns each power of ten from below `low` to `high`. */
function decades(low, high, step) {
  const all = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    if (power % step === 0) all.push(Number(`1e${power}`));
  }
  return all;
}

/** Returns whether names do not fit beside each other. */
function isCrowded(axis, u, values) {
  if (axis.scale !== 'categories' || !values?.length) return false;
  return width(u, values) * axis.categories.length > u.width - 80;
}

/** Returns the height of the labels below a plot. */
function bottom(axis, u, values) {
  if (!isCrowded(axis, u, values)) return 34;
  return Math.ceil(24 + width(u, values) * Math.sin((SLOPE * Math.PI) / 180));
}

/** Returns the width of the longest label. */
function width(u, values) {
  if (!values) return 50;
  u.ctx.save();
  u.ctx.font = `${12 * devicePixelRatio}px ${FONT}`;
  const longest = Math.max(0, ...values.map((text) => u.ctx.measureText(text).width));
  u.ctx.restore();
  return Math.ceil(longest / devicePixelRatio) + 14;
}

/** Returns a line or box that shows the color and the dash of a series. */
function swatch(it) {
  const name = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(name, 'svg');
  svg.setAttribute('viewBox', '0 0 24 10');
  svg.setAttribute('width', '24');
  svg.setAttribute('height', '10');
  svg.setAttribute('aria-hidden', 'true');
  svg.setAttribute('class', it.color === null ? 'reference' : `k${it.color % COLORS}`);
  const isBox = it.style === 'bars' || it.style === 'ranges';
  const shape = document.createElementNS(name, isBox ? 'rect' : 'line');
  const values = isBox
    ? { x: 6, y: 0, width: 12, height: 10, class: 'box' }
    : { x1: 0, y1: 5, x2: 24, y2: 5, 'stroke-dasharray': it.dash.join(' ') };
  for (const [key, value] of Object.entries(values)) shape.setAttribute(key, value);
  svg.append(shape);
  return svg;
}
