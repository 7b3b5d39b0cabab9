// Live charts and tables of a run.

import { Chart, COLORS, type Series } from '../chart.ts';
import type { FlowProgress, PortProgress, Progress } from '../documents.ts';
import { element, select } from '../element.ts';
import { count, duration, percent, withUnit } from '../format.ts';
import { cell, numberCell, Rows, table } from '../list.ts';
import { DelayMap, FLOWS_MAX } from './delaymap.ts';
import type { History } from './history.ts';

/** Ports and flows that have their own lines in charts. */
const LINES_MAX = 8;
/** Rows of the tables. */
const ROWS_MAX = 500;
const DASH = [6, 4];

type Layer = 'l1' | 'l2';

export class Live {
  readonly node: HTMLElement;
  /** Names of the flows that the user chose. */
  readonly chosen = new Set<string>();
  private readonly frames: Chart;
  private readonly bits: Chart;
  private readonly loss: Chart;
  private readonly delay: Chart;
  private readonly delays: DelayMap;
  private readonly connections: Chart;
  private readonly layer: HTMLSelectElement;
  private readonly tiles = element('dl', { class: 'tiles' });
  private readonly portRows: Rows<PortProgress>;
  private readonly flowRows: Rows<FlowProgress>;
  private readonly flowTable: HTMLElement;
  private readonly flowNote = element('p', { class: 'hint' });
  private isOver = false;

  constructor(
    private readonly history: History,
    signal: AbortSignal,
    private readonly canChoose: boolean,
    private readonly onChoice: () => void,
  ) {
    this.frames = new Chart({ title: 'Frame rate', unit: 'frames/s', signal });
    this.bits = new Chart({ title: 'Bit rate', unit: 'bit/s', signal });
    this.loss = new Chart({
      title: 'Loss',
      unit: '',
      note: 'Frames that have not arrived. Frames under way count until they arrive.',
      signal,
    });
    this.delay = new Chart({ title: 'Mean delay', unit: 'ns', signal });
    this.delays = new DelayMap(signal);
    this.connections = new Chart({ title: 'Connections', unit: '', signal });
    this.layer = select(
      [
        ['l1', 'L1: with preamble, gap and FCS'],
        ['l2', 'L2: with FCS'],
      ],
      {
        'aria-label': 'Layer of the bit rate',
        class: 'layer',
        on: { change: () => this.update() },
      },
    );
    this.bits.node.querySelector('figcaption')?.append(' ', this.layer);
    this.portRows = new Rows<PortProgress>(
      (port) => port.name,
      (port) => this.portCells(port),
      // A port that stands still has other rates than before.
      (port) => JSON.stringify([port, this.history.latest?.ports.get(port.name)]),
    );
    this.flowRows = new Rows<FlowProgress>(
      (flow) => flow.name,
      (flow) => this.flowCells(flow),
      (flow) => JSON.stringify([flow, this.history.latest?.flows.get(flow.name)]),
    );
    const columns = (labels: string[], texts: number): { label: string; isNumber: boolean }[] =>
      labels.map((label, at) => ({ label, isNumber: at >= texts }));
    this.flowTable = table(
      'Flows',
      columns(
        [
          'Flow',
          'Sent',
          'Tx rate',
          'Received',
          'Rx rate',
          'Not arrived',
          'Reordered',
          'Duplicates',
          'Mean delay',
          'Median',
          '99 %',
          'Jitter',
        ],
        1,
      ),
      this.flowRows.body,
    );
    this.node = element(
      'div',
      { class: 'live' },
      this.tiles,
      element(
        'div',
        { class: 'charts' },
        this.frames.node,
        this.bits.node,
        this.loss.node,
        this.delay.node,
        this.delays.node,
        this.connections.node,
      ),
      element('h2', {}, 'Ports'),
      table(
        'Ports',
        columns(
          [
            'Port',
            'Tx frames',
            'Tx rate',
            'Tx L1',
            'Rx frames',
            'Rx rate',
            'Rx L1',
            'Failed',
            'Not sent',
            'Rx dropped',
          ],
          1,
        ),
        this.portRows.body,
      ),
      element(
        'div',
        { class: 'flows-part' },
        element('h2', {}, 'Flows'),
        this.flowNote,
        this.flowTable,
      ),
    );
    for (const chart of [this.loss, this.delay, this.connections]) chart.node.hidden = true;
  }

  /** Notes counters. */
  add(progress: Progress): void {
    this.history.add(progress);
    this.delays.add(progress);
  }

  /** Shows that the run has ended: none of its flows is paused any longer. */
  end(): void {
    this.isOver = true;
    this.update();
  }

  update(): void {
    const progress = this.history.last;
    if (!progress) return;
    this.delays.update();
    this.showTiles(progress);
    this.showCharts();
    this.portRows.update(progress.ports.slice(0, ROWS_MAX));
    const flows = progress.flows.slice(0, ROWS_MAX);
    this.flowRows.update(
      this.isOver ? flows.map((flow) => ({ ...flow, is_paused: false })) : flows,
    );
    (this.flowTable.parentElement as HTMLElement).hidden = progress.flows.length === 0;
    const measured = progress.flows.filter((flow) => flow.received).length;
    const notes = [
      progress.flows.length > ROWS_MAX &&
        `The first ${count(ROWS_MAX)} of ${count(progress.flows.length)} flows.`,
      measured > FLOWS_MAX &&
        `Median and 99 % are those of the first ${FLOWS_MAX} of ${count(measured)} measured flows.`,
      measured > 0 &&
        'Rates and the mean delay are those of the last interval; the other values since the start.',
    ].filter(Boolean);
    this.flowNote.textContent = notes.join(' ');
  }

  private showTiles(progress: Progress): void {
    const sample = this.history.latest;
    const ports = sample ? [...sample.ports.values()] : [];
    const sum = (value: (it: (typeof ports)[number]) => number): number =>
      ports.reduce((total, it) => total + value(it), 0);
    const measured = progress.flows.filter((flow) => flow.received);
    const sent = measured.reduce((total, flow) => total + flow.tx_frames, 0);
    const arrived = measured.reduce((total, flow) => total + (flow.received?.frames ?? 0), 0);
    const tiles: Array<[string, string, string]> = [
      [
        'Time',
        duration(progress.elapsed_ns / 1e9),
        progress.fraction === null || progress.fraction === undefined
          ? ''
          : `${Math.round(progress.fraction * 100)} %`,
      ],
      [
        'Sent',
        withUnit(
          sum((it) => it.txFrames),
          'frames/s',
        ),
        `${withUnit(
          sum((it) => it.txBits.l1),
          'bit/s',
        )} L1`,
      ],
      [
        'Received',
        withUnit(
          sum((it) => it.rxFrames),
          'frames/s',
        ),
        `${withUnit(
          sum((it) => it.rxBits.l1),
          'bit/s',
        )} L1`,
      ],
    ];
    if (measured.length) {
      tiles.push([
        'Not arrived',
        count(Math.max(0, sent - arrived)),
        percent(Math.max(0, sent - arrived), sent),
      ]);
      tiles.push(['Mean delay', withUnit(sample?.delayNs, 'ns'), 'last interval']);
    }
    if (progress.ports.some((port) => port.connections.established > 0)) {
      tiles.push([
        'Open connections',
        count(progress.ports.reduce((total, port) => total + port.connections.active, 0)),
        `${withUnit(
          sum((it) => it.established),
          '/s',
        )} established`,
      ]);
    }
    const isSame = this.tiles.childElementCount === tiles.length;
    tiles.forEach(([name, value, note], at) => {
      const node = isSame
        ? this.tiles.children[at]!
        : element(
            'div',
            {},
            element('dt'),
            element('dd', { class: 'value' }),
            element('dd', { class: 'note' }),
          );
      [name, value, note].forEach((text, part) => {
        if (node.children[part]!.textContent !== text) node.children[part]!.textContent = text;
      });
      if (!isSame) {
        if (at === 0) this.tiles.replaceChildren();
        this.tiles.append(node);
      }
    });
  }

  private showCharts(): void {
    const { samples } = this.history;
    const xs = samples.map((it) => it.seconds);
    const layer = this.layer.value as Layer;
    const names = [...(samples.at(-1)?.ports.keys() ?? [])];
    const many = names.length > LINES_MAX / 2;
    const port = (
      label: string,
      color: number,
      dash: number[] | null,
      value: (name: string, at: number) => number | undefined,
      of: string[],
    ): Series => ({
      label,
      color,
      ...(dash ? { dash } : {}),
      values: samples.map((_, at) => of.reduce((sum, name) => sum + (value(name, at) ?? 0), 0)),
    });
    const perPort = (
      tx: (name: string, at: number) => number | undefined,
      rx: (name: string, at: number) => number | undefined,
    ): Series[] => {
      const groups: Array<[string, string[]]> = many
        ? [['all ports', names]]
        : names.map((name) => [name, [name]]);
      const all = groups.flatMap(([label, of], at) => [
        port(`${label} tx`, at % COLORS, null, tx, of),
        port(`${label} rx`, at % COLORS, DASH, rx, of),
      ]);
      const used = all.filter((it) => it.values.some((value) => value !== 0));
      return used.length ? used : all;
    };
    this.frames.update(
      xs,
      perPort(
        (name, at) => samples[at]?.ports.get(name)?.txFrames,
        (name, at) => samples[at]?.ports.get(name)?.rxFrames,
      ),
    );
    this.bits.update(
      xs,
      perPort(
        (name, at) => samples[at]?.ports.get(name)?.txBits[layer],
        (name, at) => samples[at]?.ports.get(name)?.rxBits[layer],
      ),
    );

    const measured = (this.history.last?.flows ?? [])
      .filter((flow) => flow.received)
      .map((flow) => flow.name);
    const shown = measured.length > 1 ? measured.slice(0, LINES_MAX - 1) : [];
    this.loss.node.hidden = measured.length === 0;
    if (measured.length) {
      this.loss.update(xs, [
        { label: 'total', color: 7, values: samples.map((it) => it.missing) },
        ...shown.map((name, at) => ({
          label: name,
          color: at,
          values: samples.map((it) => it.flows.get(name)?.missing ?? null),
        })),
      ]);
    }
    const probes = [...(samples.at(-1)?.probes.keys() ?? [])];
    const hasDelay = samples.some((it) => it.delayNs !== null);
    this.delay.node.hidden = !hasDelay && !probes.length;
    if (!this.delay.node.hidden) {
      this.delay.update(xs, [
        ...(hasDelay
          ? [{ label: 'all flows', color: 7, values: samples.map((it) => it.delayNs) }]
          : []),
        ...shown.map((name, at) => ({
          label: name,
          color: at,
          values: samples.map((it) => it.flows.get(name)?.delayNs ?? null),
        })),
        ...probes.map((name, at) => ({
          label: `round trip ${name}`,
          color: at,
          dash: DASH,
          values: samples.map((it) => it.probes.get(name) ?? null),
        })),
      ]);
    }
    const hasConnections = (this.history.last?.ports ?? []).some(
      (it) => it.connections.established > 0 || it.connections.failed > 0,
    );
    this.connections.node.hidden = !hasConnections;
    if (hasConnections) {
      const total = (value: 'active' | 'established' | 'failed') =>
        samples.map((it) => [...it.ports.values()].reduce((sum, rates) => sum + rates[value], 0));
      this.connections.update(xs, [
        { label: 'open', color: 0, values: total('active') },
        { label: 'established per second', color: 2, values: total('established') },
        { label: 'failed per second', color: 1, dash: DASH, values: total('failed') },
      ]);
    }
  }

  private portCells(port: PortProgress): HTMLTableCellElement[] {
    const rates = this.history.latest?.ports.get(port.name);
    const bad = (label: string, value: number): HTMLTableCellElement =>
      numberCell(
        label,
        value > 0 ? element('span', { class: 'bad-text' }, count(value)) : count(value),
      );
    return [
      cell(
        'Port',
        element('strong', {}, port.name),
        element('span', { class: 'sub' }, port.interface),
      ),
      numberCell('Tx frames', count(port.tx_frames)),
      numberCell('Tx rate', withUnit(rates?.txFrames, 'frames/s')),
      numberCell('Tx L1', withUnit(rates?.txBits.l1, 'bit/s')),
      numberCell('Rx frames', count(port.rx_frames)),
      numberCell('Rx rate', withUnit(rates?.rxFrames, 'frames/s')),
      numberCell('Rx L1', withUnit(rates?.rxBits.l1, 'bit/s')),
      bad('Failed', port.tx_failed),
      bad('Not sent', port.tx_unsent),
      bad('Rx dropped', port.rx_dropped),
    ];
  }

  private flowCells(flow: FlowProgress): HTMLTableCellElement[] {
    const rates = this.history.latest?.flows.get(flow.name);
    const received = flow.received;
    const missing = received ? Math.max(0, flow.tx_frames - received.frames) : 0;
    const box = this.canChoose
      ? element('input', {
          type: 'checkbox',
          checked: this.chosen.has(flow.name),
          'data-key': 'chosen',
          on: {
            change: (event) => {
              if ((event.target as HTMLInputElement).checked) this.chosen.add(flow.name);
              else this.chosen.delete(flow.name);
              this.onChoice();
            },
          },
        })
      : null;
    return [
      cell(
        'Flow',
        box ? element('label', { class: 'check' }, box, flow.name) : flow.name,
        flow.is_paused && [' ', element('span', { class: 'badge active' }, 'paused')],
      ),
      numberCell('Sent', count(flow.tx_frames)),
      numberCell('Tx rate', withUnit(rates?.txFrames, 'frames/s')),
      numberCell('Received', received ? count(received.frames) : 'not measured'),
      numberCell('Rx rate', withUnit(rates?.rxFrames, 'frames/s')),
      numberCell(
        'Not arrived',
        received ? `${count(missing)} (${percent(missing, flow.tx_frames)})` : '–',
      ),
      numberCell('Reordered', count(received?.reordered)),
      numberCell('Duplicates', count(received?.duplicated)),
      numberCell('Mean delay', withUnit(rates?.delayNs ?? received?.delay_mean_ns, 'ns')),
      numberCell('Median', withUnit(flow.delays?.p50_ns, 'ns')),
      numberCell('99 %', withUnit(flow.delays?.p99_ns, 'ns')),
      numberCell('Jitter', withUnit(received?.jitter_ns, 'ns')),
    ];
  }
}
