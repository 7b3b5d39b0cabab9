// Figures of a finished run, from its result document.

import { Chart } from '../chart.ts';
import { element } from '../element.ts';
import { count, duration, percent, withUnit } from '../format.ts';
import { heatMap, type HeatRow } from '../heatmap.ts';
import { cell, numberCell, table } from '../list.ts';
import { type FlowSeries, padded, seriesCharts } from './series.ts';

const ROWS_MAX = 500;
const HEAT_ROWS_MAX = 40;
const LINES_MAX = 8;
const NOTES_MAX = 50;

/** What the page reads of `wirestorm.result/2`. Other documents have none of it. */
interface Result {
  schema?: string;
  verdict?: { outcome: string; reasons: string[] };
  achieved?: {
    packets: number;
    pps: number | null;
    bps_l1: number | null;
    bps_l2: number | null;
    failed: number;
    unsent: number;
  };
  times?: { elapsed_s: number };
  errors?: string[];
  notes?: string[];
  flows?: FlowResult[];
  ports?: PortResult[];
}

interface FlowResult {
  name: string;
  packets: number;
  pps: number | null;
  lost: number | null;
  loss_percent: number | null;
  measured?: Measured[];
}

interface Measured {
  port: string;
  received: number;
  duplicated: number;
  reordered: number;
  delay: Delay | null;
  series?: FlowSeries | null;
}

interface Delay {
  count: number;
  min_ns: number;
  mean_ns: number;
  p50_ns: number;
  p99_ns: number;
  p99_9_ns: number;
  max_ns: number;
  buckets: Array<[number, number]>;
}

interface Connections {
  flows?: Record<string, number>;
  series?: {
    interval_s: number;
    opened: number[];
    concurrent: number[];
    failed: number[];
    goodput_bps: number[];
  } | null;
}

interface PortResult {
  name: string;
  interface: string;
  backend: string | null;
  tx: { packets: number; pps: number | null; bps_l1: number | null } | null;
  rx: { packets: number; pps: number | null; dropped: number } | null;
  connections: Connections | null;
}

/** Creates the figures. `document`: the answer of the server. */
export function resultView(document: unknown, signal: AbortSignal): HTMLElement {
  const result = (document ?? {}) as Result;
  const node = element('div', { class: 'result' });
  if (!result.achieved && !result.flows) {
    node.append(
      element(
        'p',
        {},
        `The report shows the results of this kind (${result.schema ?? 'unknown'}).`,
      ),
    );
    return node;
  }
  const flows = result.flows ?? [];
  node.append(tiles(result, flows));
  const texts = [
    ...(result.verdict?.reasons ?? []),
    ...(result.errors ?? []),
    ...(result.notes ?? []),
  ].slice(0, NOTES_MAX);
  if (texts.length)
    node.append(
      element(
        'ul',
        { class: 'remarks' },
        texts.map((text) => element('li', {}, text)),
      ),
    );
  const charts = element('div', { class: 'charts' });
  const measured = flows.flatMap((flow) =>
    (flow.measured ?? []).map((it) => ({
      label: (flow.measured ?? []).length > 1 ? `${flow.name}, ${it.port}` : flow.name,
      flow,
      it,
    })),
  );
  const heat: HeatRow[] = measured
    .filter(({ it }) => it.delay?.buckets.length)
    .slice(0, HEAT_ROWS_MAX)
    .map(({ label, it }) => ({ label, buckets: it.delay!.buckets }));
  if (heat.length) charts.append(heatMap('Distribution of the delay', heat, signal));
  const timed = measured.flatMap(({ label, it }) =>
    it.series ? [{ label, series: it.series }] : [],
  );
  charts.append(...seriesCharts(timed, signal));
  const busy = (result.ports ?? []).filter((port) => port.connections?.flows);
  charts.append(...connectionCharts(busy, signal));
  if (charts.childElementCount) node.append(charts);
  if (busy.length) node.append(element('h2', {}, 'Connections'), connectionTable(busy));
  if (result.ports?.length) node.append(element('h2', {}, 'Ports'), portTable(result.ports));
  if (flows.length) node.append(element('h2', {}, 'Flows'), flowTable(flows));
  return node;
}

function tiles(result: Result, flows: readonly FlowResult[]): HTMLElement {
  const { achieved } = result;
  const facts: Array<[string, string, string]> = [];
  if (result.verdict)
    facts.push([
      'Verdict',
      result.verdict.outcome.replaceAll('_', ' '),
      result.times ? `after ${duration(result.times.elapsed_s)}` : '',
    ]);
  if (achieved) {
    facts.push(['Sent', count(achieved.packets), 'frames']);
    facts.push(['Frame rate', withUnit(achieved.pps, 'frames/s'), 'mean']);
    facts.push([
      'Bit rate',
      withUnit(achieved.bps_l1, 'bit/s'),
      `L1; ${withUnit(achieved.bps_l2, 'bit/s')} L2`,
    ]);
  }
  const measured = flows.filter((flow) => flow.lost !== null);
  if (measured.length) {
    const lost = measured.reduce((sum, flow) => sum + (flow.lost ?? 0), 0);
    const sent = measured.reduce((sum, flow) => sum + flow.packets, 0);
    facts.push([
      'Lost',
      count(lost),
      sent > 0 ? `${Number(((100 * lost) / sent).toPrecision(3))} % of ${count(sent)}` : '',
    ]);
    const delays = measured
      .flatMap((flow) => flow.measured ?? [])
      .map((it) => it.delay)
      .filter((it) => it !== null);
    const frames = delays.reduce((sum, it) => sum + it.count, 0);
    if (frames > 0) {
      const mean = delays.reduce((sum, it) => sum + it.mean_ns * it.count, 0) / frames;
      facts.push([
        'Mean delay',
        withUnit(mean, 'ns'),
        `at most ${withUnit(Math.max(...delays.map((it) => it.max_ns)), 'ns')}`,
      ]);
    }
  }
  return element(
    'dl',
    { class: 'tiles' },
    facts.map(([name, value, note]) =>
      element(
        'div',
        {},
        element('dt', {}, name),
        element('dd', { class: 'value' }, value),
        element('dd', { class: 'note' }, note),
      ),
    ),
  );
}

/** Charts of the connections and of the payload of emulated clients and servers. */
function connectionCharts(ports: readonly PortResult[], signal: AbortSignal): HTMLElement[] {
  const timed = ports.filter((port) => port.connections?.series).slice(0, LINES_MAX / 2);
  if (!timed.length) return [];
  const connections = new Chart({ title: 'Connections over time', unit: '/s', signal });
  const goodput = new Chart({ title: 'Received payload over time', unit: 'bit/s', signal });
  queueMicrotask(() => {
    const interval = timed[0]!.connections!.series!.interval_s;
    const length = Math.max(...timed.map((port) => port.connections!.series!.opened.length));
    const xs = Array.from({ length }, (_, at) => (at + 0.5) * interval);
    const rate = (values: readonly number[]): Array<number | null> =>
      padded(values, length).map((value) => (value === null ? null : value / interval));
    connections.update(
      xs,
      timed.flatMap(({ name, connections: it }, at) => [
        { label: `${name} opened`, color: at, values: rate(it!.series!.opened) },
        { label: `${name} failed`, color: at, dash: [2, 3], values: rate(it!.series!.failed) },
      ]),
    );
    goodput.update(
      xs,
      timed.map(({ name, connections: it }, at) => ({
        label: name,
        color: at,
        values: padded(it!.series!.goodput_bps, length),
      })),
    );
  });
  return [connections.node, goodput.node];
}

function connectionTable(ports: readonly PortResult[]): HTMLElement {
  const labels = ['Port', 'Closed', 'Failed', 'Reset', 'Refused', 'Unfinished', 'Most at a time'];
  const keys = ['closed', 'failed', 'reset', 'refused', 'unfinished', 'active_max'];
  return table(
    'Connections',
    labels.map((label, at) => ({ label, isNumber: at > 0 })),
    element(
      'tbody',
      {},
      ports.slice(0, ROWS_MAX).map((port) =>
        element(
          'tr',
          {},
          cell('Port', element('strong', {}, port.name)),
          keys.map((key, at) => numberCell(labels[at + 1]!, count(port.connections?.flows?.[key]))),
        ),
      ),
    ),
  );
}

function portTable(ports: readonly PortResult[]): HTMLElement {
  const labels = [
    'Port',
    'Backend',
    'Tx frames',
    'Tx rate',
    'Tx L1',
    'Rx frames',
    'Rx rate',
    'Rx dropped',
  ];
  return table(
    'Ports',
    labels.map((label, at) => ({ label, isNumber: at > 1 })),
    element(
      'tbody',
      {},
      ports
        .slice(0, ROWS_MAX)
        .map((port) =>
          element(
            'tr',
            {},
            cell(
              'Port',
              element('strong', {}, port.name),
              element('span', { class: 'sub' }, port.interface),
            ),
            cell('Backend', port.backend ?? '–'),
            numberCell('Tx frames', count(port.tx?.packets)),
            numberCell('Tx rate', withUnit(port.tx?.pps, 'frames/s')),
            numberCell('Tx L1', withUnit(port.tx?.bps_l1, 'bit/s')),
            numberCell('Rx frames', count(port.rx?.packets)),
            numberCell('Rx rate', withUnit(port.rx?.pps, 'frames/s')),
            numberCell('Rx dropped', count(port.rx?.dropped)),
          ),
        ),
    ),
  );
}

function flowTable(flows: readonly FlowResult[]): HTMLElement {
  const labels = [
    'Flow',
    'Sent',
    'Rate',
    'Lost',
    'Reordered',
    'Duplicates',
    'Median delay',
    '99 %',
    'Maximum',
  ];
  const rows = flows.slice(0, ROWS_MAX).map((flow) => {
    const measured = flow.measured ?? [];
    const delay = measured.length === 1 ? measured[0]!.delay : null;
    const sum = (value: (it: Measured) => number): string =>
      measured.length ? count(measured.reduce((total, it) => total + value(it), 0)) : '–';
    return element(
      'tr',
      {},
      cell('Flow', flow.name),
      numberCell('Sent', count(flow.packets)),
      numberCell('Rate', withUnit(flow.pps, 'frames/s')),
      numberCell(
        'Lost',
        flow.lost === null
          ? 'not measured'
          : `${count(flow.lost)}${flow.lost ? ` (${percent(flow.lost, flow.packets)})` : ''}`,
      ),
      numberCell(
        'Reordered',
        sum((it) => it.reordered),
      ),
      numberCell(
        'Duplicates',
        sum((it) => it.duplicated),
      ),
      numberCell('Median delay', withUnit(delay?.p50_ns, 'ns')),
      numberCell('99 %', withUnit(delay?.p99_ns, 'ns')),
      numberCell('Maximum', withUnit(delay?.max_ns, 'ns')),
    );
  });
  return table(
    'Flows',
    labels.map((label, at) => ({ label, isNumber: at > 0 })),
    element('tbody', {}, rows),
  );
}
