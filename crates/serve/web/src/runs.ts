// The history of runs.

import { type Context, disabledBy, type View } from './context.ts';
import type { RunSummary } from './documents.ts';
import { confirm } from './dialog.ts';
import { openReport } from './download.ts';
import { button, element, labelled, select } from './element.ts';
import { count, duration, many, owner, time, withUnit } from './format.ts';
import { cell, numberCell, Rows, table } from './list.ts';
import { attempt, done } from './notice.ts';
import { isActive } from './runstate.ts';
import { RUNS_MAX } from './store.ts';

const PAGE = 50;

/** Creates the mark of the state of a run, with its verdict. */
export function stateBadge(run: RunSummary): HTMLElement {
  const verdict =
    run.outcome && run.outcome !== run.state ? `, ${run.outcome.replaceAll('_', ' ')}` : '';
  const isBad =
    run.state === 'failed' || run.state === 'died' || (!!run.outcome && run.outcome !== 'met');
  const kind = isActive(run) ? 'active' : isBad ? 'bad' : 'good';
  const state = isActive(run) && run.is_paused ? 'paused' : run.state;
  return element('span', { class: `badge ${kind}` }, state + verdict);
}

export function runsView(context: Context): View {
  const { store } = context;
  let shown = PAGE;
  const filter = element('input', {
    type: 'search',
    placeholder: 'Name, ID, kind, user or interface',
    on: {
      input: () => {
        shown = PAGE;
        update();
      },
    },
  });
  const states = select(
    [
      ['', 'all states'],
      ['active', 'active'],
      ...(['finished', 'interrupted', 'failed', 'died'] as const).map((it) => [it, it] as const),
    ],
    {
      on: {
        change: () => {
          shown = PAGE;
          update();
        },
      },
    },
  );
  const rows = new Rows<RunSummary>(
    (run) => run.id,
    (run) => cells(context, run),
    JSON.stringify,
    RUNS_MAX,
  );
  const columns = [
    ['Run'],
    ['Kind'],
    ['State'],
    ['User'],
    ['Interfaces'],
    ['Start'],
    ['Time', true],
    ['Key figure', true],
    ['Actions'],
  ] as const;
  const list = table(
    'Runs',
    columns.map(([label, isNumber]) => ({ label, isNumber: isNumber ?? false })),
    rows.body,
  );
  const summary = element('p', { class: 'hint', role: 'status' });
  const more = button('Show more', () => {
    shown += PAGE;
    const isShort = update() < shown;
    if (isShort && store.hasMore) attempt('Older runs', () => store.readMore());
  });
  /** Shows the runs that match the filter, and returns their number. */
  const update = (): number => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...store.runs.values()].filter((run) => {
      if (states.value === 'active' ? !isActive(run) : states.value && run.state !== states.value)
        return false;
      const text = [run.id, run.name, run.kind, run.user, run.session, ...run.interfaces]
        .join(' ')
        .toLowerCase();
      return words.every((word) => text.includes(word));
    });
    rows.update(found.slice(0, shown));
    list.hidden = found.length === 0;
    more.hidden = found.length <= shown && !store.hasMore;
    const isFiltered = words.length > 0 || states.value !== '';
    const left =
      store.total > store.runs.size
        ? `; the history has ${store.total.toLocaleString('en')} runs` +
          (isFiltered ? `, of which the newest ${count(store.runs.size)} are searched` : '')
        : '';
    const text = store.isLoaded
      ? `${count(Math.min(shown, found.length))} of ${many(found.length, 'run')}${left}`
      : 'Loading…';
    if (summary.textContent !== text) summary.textContent = text;
    return found.length;
  };
  store.subscribe(update, context.signal);
  update();
  return {
    title: 'Runs',
    node: element(
      'section',
      {},
      element('h1', {}, 'Runs'),
      element(
        'div',
        { class: 'fields filter' },
        labelled('Filter', filter),
        labelled('State', states),
      ),
      summary,
      list,
      more,
    ),
  };
}

function cells(context: Context, run: RunSummary): HTMLTableCellElement[] {
  const { api, me, store } = context;
  const path = { run: run.id };
  const name = run.name ?? run.id;
  const end = run.ended_unix_ns;
  const refusal =
    me.refusalOfRun('DELETE /runs/{run}', run) ?? (isActive(run) ? 'The run has not ended.' : null);
  return [
    cell(
      'Run',
      element('a', { href: `#/runs/${encodeURIComponent(run.id)}` }, name),
      run.name && element('span', { class: 'sub' }, run.id),
    ),
    cell('Kind', run.kind),
    cell(
      'State',
      stateBadge(run),
      !run.is_saved && element('span', { class: 'badge bad' }, 'not saved'),
      run.message && element('span', { class: 'sub' }, run.message),
    ),
    cell('User', run.user ? owner(run.user, run.session) : '–'),
    cell('Interfaces', run.interfaces.join(', ') || '–'),
    cell('Start', time(run.created_unix_ns)),
    numberCell('Time', end ? duration((end - run.created_unix_ns) / 1e9) : '–'),
    numberCell(
      'Key figure',
      run.figure ? [figure(run), element('span', { class: 'sub' }, run.figure.name)] : '–',
    ),
    element(
      'td',
      { class: 'actions' },
      !isActive(run) &&
        button(
          'Report',
          () =>
            attempt('Report', async () => {
              openReport(await api.call('GET /runs/{run}/report', { path }), name);
            }),
          { class: 'small', 'data-key': 'report', 'aria-label': `Report of ${name}` },
        ),
      button(
        'Delete',
        () =>
          confirm(
            `Delete run ${name}?`,
            'Delete the run',
            async () => {
              await api.call('DELETE /runs/{run}', { path });
              store.dropRun(run.id);
              done(`Deleted run ${name}.`);
            },
            element('p', {}, 'Its result and its report are deleted from the history.'),
          ),
        {
          class: 'small',
          'data-key': 'delete',
          'aria-label': `Delete ${name}`,
          ...disabledBy(refusal),
        },
      ),
    ),
  ];
}

/** Formats the key figure of a run. */
export function figure(run: RunSummary): string {
  if (!run.figure) return '–';
  const { value, unit } = run.figure;
  if (unit === 'frames/s' || unit === 'bit/s' || unit === '/s' || unit === '%' || unit === 'ns')
    return withUnit(value, unit);
  return `${withUnit(value, '')}${unit ? ` ${unit}` : ''}`;
}
