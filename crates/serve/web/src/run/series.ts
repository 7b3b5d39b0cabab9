// Charts of the time series of a finished run's flows.

import { Chart, COLORS } from '../chart.ts';
import type { Unit } from '../format.ts';

const LINES_MAX = 8;

type Values = ReadonlyArray<number | null>;

/** What the charts read of a time series. Results of earlier versions lack the optional lists. */
export interface FlowSeries {
  interval_s: number;
  packets: number[];
  delay_mean_ns: Values;
  delay_max_ns: Values;
  pdv_max_ns?: Values;
  ipdv_mean_ns?: Values;
  jitter_ns?: Values;
  reordered?: number[];
  duplicated?: number[];
}

export interface TimedFlow {
  label: string;
  series: FlowSeries;
}

/** A line of a chart for each flow; `null` if the flow has no values. */
interface Kind {
  name: string;
  dash?: number[];
  values: (series: FlowSeries) => Values | null;
}

/** Creates a chart of each kind of values that at least one flow has. */
export function seriesCharts(flows: readonly TimedFlow[], signal: AbortSignal): HTMLElement[] {
  const charts: Array<[string, Unit, Kind[]]> = [
    [
      'Delay over time: mean and maximum',
      'ns',
      [
        { name: 'mean', values: (it) => known(it.delay_mean_ns) },
        { name: 'max', dash: [2, 3], values: (it) => known(it.delay_max_ns) },
      ],
    ],
    [
      'Delay variation over time',
      'ns',
      [
        { name: 'PDV', values: (it) => known(it.pdv_max_ns) },
        { name: 'IPDV', dash: [6, 3], values: (it) => known(it.ipdv_mean_ns) },
        { name: 'jitter', dash: [2, 3], values: (it) => known(it.jitter_ns) },
      ],
    ],
    [
      'Reordered and duplicated frames over time',
      'frames/s',
      [
        { name: 'reordered', values: (it) => rates(it.reordered, it.interval_s) },
        { name: 'duplicated', dash: [2, 3], values: (it) => rates(it.duplicated, it.interval_s) },
      ],
    ],
  ];
  return charts.flatMap(([title, unit, kinds]) => chart(title, unit, kinds, flows, signal));
}

function chart(
  title: string,
  unit: Unit,
  kinds: readonly Kind[],
  flows: readonly TimedFlow[],
  signal: AbortSignal,
): HTMLElement[] {
  const timed = flows
    .filter(({ series }) => kinds.some((kind) => kind.values(series)))
    .slice(0, LINES_MAX);
  if (!timed.length) return [];
  const interval = timed[0]!.series.interval_s;
  const length = Math.max(...timed.map(({ series }) => series.packets.length));
  const lines = timed.flatMap(({ label, series }, at) =>
    kinds.flatMap(({ name, dash, values }) => {
      const found = values(series);
      if (!found) return [];
      const line = { label: `${label} ${name}`, color: at % COLORS, values: padded(found, length) };
      return [dash ? { ...line, dash } : line];
    }),
  );
  const chart = new Chart({ title, unit, signal });
  // The chart needs its width, which it has in the page only.
  queueMicrotask(() => {
    chart.update(
      Array.from({ length }, (_, at) => (at + 0.5) * interval),
      lines,
    );
  });
  return [chart.node];
}

function known(values: Values | undefined): Values | null {
  return values?.some((value) => value !== null) ? values : null;
}

function rates(counts: number[] | undefined, interval: number): Values | null {
  return counts?.some((value) => value > 0) ? counts.map((value) => value / interval) : null;
}

/** Returns the values, with absent ones up to a length. */
export function padded(values: Values, length: number): Array<number | null> {
  return Array.from({ length }, (_, at) => values[at] ?? null);
}
