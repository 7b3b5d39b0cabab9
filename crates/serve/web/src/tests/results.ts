// Results of the iterations of a test.

import type { Context } from '../context.ts';
import type { TestDelay, TestFlow, TestIteration, TestRun, TestSummary } from '../documents.ts';
import { openReport } from '../download.ts';
import { button, type Child, element } from '../element.ts';
import { count, many, withUnit } from '../format.ts';
import { cell, numberCell, table } from '../list.ts';
import { attempt } from '../notice.ts';

/** Returns the results, the latest iteration first. */
export function resultsOf(
  context: Context,
  test: TestSummary,
  iterations: readonly TestIteration[],
): Child[] {
  return iterations.toReversed().map((iteration) => [
    element('h2', {}, test.iterations > 1 ? `Results of iteration ${iteration.number}` : 'Results'),
    iteration.lost.map((lost) =>
      element('p', { class: 'message problem' }, `Agent ${lost.agent} was lost: ${lost.reason}`),
    ),
    typeof iteration.start_skew_ns === 'number' &&
      element(
        'p',
        { class: 'hint' },
        `Start skew between agents: ${withUnit(iteration.start_skew_ns, 'ns')}`,
      ),
    iteration.runs.map((run) => runOf(context, iteration.number, run)),
  ]);
}

function runOf({ api }: Context, iteration: number, run: TestRun): Child[] {
  const kind = run.outcome === 'met' ? 'good' : 'bad';
  const id = run.run;
  const rest = run.flows_total - new Set(run.flows.map((flow) => flow.name)).size;
  return [
    element(
      'div',
      { class: 'test-run' },
      element('h3', {}, run.name),
      element(
        'span',
        { class: `badge ${kind}` },
        run.outcome?.replaceAll('_', ' ') ?? 'no result',
      ),
      id && element('a', { href: `#/runs/${encodeURIComponent(id)}` }, 'Run in the history'),
      id &&
        button(
          'Report',
          () =>
            attempt('Report', async () => {
              openReport(await api.call('GET /runs/{run}/report', { path: { run: id } }), run.name);
            }),
          {
            class: 'small',
            'data-key': `report-${iteration}-${run.name}`,
            'aria-label': `Report of ${run.name}`,
          },
        ),
    ),
    run.messages.length > 0 &&
      element(
        'ul',
        { class: 'remarks' },
        run.messages.map((text) => element('li', {}, text)),
      ),
    run.flows.length > 0 &&
      table(
        `Flows of ${run.name}`,
        [
          { label: 'Flow' },
          { label: 'Sent', isNumber: true },
          { label: 'Received', isNumber: true },
          { label: 'Loss', isNumber: true },
          { label: 'One-way delay', isNumber: true },
          { label: 'Error of the delay' },
          { label: 'Jitter', isNumber: true },
          { label: 'Reordered', isNumber: true },
        ],
        element(
          'tbody',
          {},
          run.flows.map((flow) => element('tr', {}, flowCells(flow))),
        ),
      ),
    rest > 0 && element('p', { class: 'hint' }, `The report has ${many(rest, 'more flow')}.`),
  ];
}

function flowCells(flow: TestFlow): HTMLTableCellElement[] {
  const frames = (value: number | null | undefined, rate: number | null | undefined): Child => [
    withUnit(rate, 'frames/s'),
    element('span', { class: 'sub' }, count(value)),
  ];
  return [
    cell(
      'Flow',
      element('strong', {}, flow.name),
      element('span', { class: 'sub' }, flow.rx ? `${flow.tx} > ${flow.rx}` : flow.tx),
    ),
    numberCell('Sent', frames(flow.sent, flow.sent_pps)),
    numberCell('Received', flow.rx ? frames(flow.received, flow.received_pps) : 'not measured'),
    numberCell('Loss', withUnit(flow.loss_percent, '%')),
    numberCell('One-way delay', flow.delay ? delayOf(flow.delay) : '–'),
    cell('Error of the delay', flow.delay ? errorOf(flow.delay) : '–'),
    numberCell('Jitter', withUnit(flow.jitter_ns, 'ns')),
    numberCell('Reordered', count(flow.reordered)),
  ];
}

function delayOf(delay: TestDelay): Child {
  const ns = (value: number | null | undefined): string => withUnit(value, 'ns');
  return [
    `mean ${ns(delay.mean_ns)}`,
    element('span', { class: 'sub' }, `min ${ns(delay.min_ns)}, max ${ns(delay.max_ns)}`),
    element('span', { class: 'sub' }, `median ${ns(delay.p50_ns)}, 99 % ${ns(delay.p99_ns)}`),
  ];
}

/** Returns the interval of a delay: it depends on an assumption, which the page always names. */
function errorOf(delay: TestDelay): Child {
  if (typeof delay.half_width_ns !== 'number') return 'sender and receiver are one machine';
  const bound = delay.bound_ns;
  return [
    `±${withUnit(delay.half_width_ns, 'ns')}, ${delay.assumption ?? 'no assumption'}`,
    typeof bound === 'number' &&
      element('span', { class: 'sub' }, `±${withUnit(bound, 'ns')} in any case`),
    element('span', { class: 'sub' }, delay.method),
  ];
}
