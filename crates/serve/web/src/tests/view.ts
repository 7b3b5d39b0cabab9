// A test: its progress while it runs, and its results.

import { ApiError, isAbort, messageOf } from '../api.ts';
import { type Context, disabledBy, type View } from '../context.ts';
import type { TestStatus } from '../documents.ts';
import { readBody, save } from '../download.ts';
import { button, element, rebuild, replace } from '../element.ts';
import { count, duration, owner, time } from '../format.ts';
import { attempt } from '../notice.ts';
import { poll } from '../poll.ts';
import { resultsOf } from './results.ts';
import { askToStop, INTERVAL_MS, PHASES, refusalOfStop, testBadge } from './state.ts';

export function testView(context: Context, id: string): View {
  const { api, signal } = context;
  const path = { test: id };
  const problem = element('p', { class: 'problem', role: 'status' });
  const title = element('h1', {}, `Test ${id}`);
  const badge = element('span', { role: 'status' });
  const message = element('p', { class: 'message', role: 'status', hidden: true });
  const facts = element('dl', { class: 'facts' });
  const controls = element('div', { class: 'controls' });
  const phases = element('ol', { class: 'phases', 'aria-label': 'Phases' });
  const tiles = element('dl', { class: 'tiles' });
  const log = element('ol', { class: 'log', tabindex: '0', 'aria-label': 'Progress' });
  const logTitle = element('h2', { hidden: true }, 'Progress');
  const results = element('div', { class: 'test-results' });
  const last = { head: '', lines: '', results: '' };

  const show = (status: TestStatus): void => {
    const { test } = status;
    title.textContent = test.name;
    document.title = `${test.name} – Wirestorm`;
    const head = JSON.stringify(test);
    if (head !== last.head) {
      last.head = head;
      replace(badge, testBadge(test));
      message.hidden = !test.message;
      message.textContent = test.message ?? '';
      message.classList.toggle('problem', test.state === 'failed');
      const end = test.ended_unix_ns;
      const rows: Array<readonly [string, string]> = [
        ['ID', test.id],
        ['User', owner(test.user, test.session)],
        ['Nodes', test.agents.join(', ') + (test.on_bus ? '' : ' (on the server)')],
        ['Start', time(test.created_unix_ns)],
        ['Time', end ? duration((end - test.created_unix_ns) / 1e9) : '–'],
      ];
      replace(
        facts,
        rows.map(([name, value]) =>
          element('div', {}, element('dt', {}, name), element('dd', {}, value)),
        ),
      );
      rebuild(controls, () => [
        test.state === 'running'
          ? button('Stop', () => askToStop(context, test, () => readAgain()), {
              class: 'danger',
              'data-key': 'stop',
              ...disabledBy(refusalOfStop(context, test)),
            })
          : button('Save the results as JSON', () => download(test.name), {
              'data-key': 'download',
              ...disabledBy(status.results.length ? null : 'The test has no results.'),
            }),
      ]);
      // One machine has one clock. Only tests with captures or other files have the phase `files`.
      const all = PHASES.filter(
        (phase) =>
          (test.on_bus || phase !== 'clocks') && (phase !== 'files' || test.phase === 'files'),
      );
      const at = all.indexOf(test.phase ?? '');
      replace(
        phases,
        all.map((phase, index) =>
          element(
            'li',
            {
              class: index < at || test.state === 'finished' ? 'done' : null,
              'aria-current': index === at && test.state === 'running' ? 'step' : null,
            },
            phase,
          ),
        ),
      );
    }
    const numbers: Array<readonly [string, string]> = [
      ['Iteration', `${test.iteration} of ${test.iterations}`],
      ['Elapsed', status.elapsed_s == null ? '–' : duration(status.elapsed_s)],
      ['Sent', count(status.sent)],
      ['Received', count(status.received)],
    ];
    replace(
      tiles,
      numbers.map(([name, value]) =>
        element('div', {}, element('dt', {}, name), element('dd', { class: 'value' }, value)),
      ),
    );
    const lines = JSON.stringify(status.lines);
    if (lines !== last.lines) {
      last.lines = lines;
      const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
      replace(
        log,
        status.lines.map((line) =>
          element('li', {}, element('time', {}, time(line.at_unix_ns)), line.text),
        ),
      );
      logTitle.hidden = log.hidden = status.lines.length === 0;
      if (isAtEnd) log.scrollTop = log.scrollHeight;
    }
    const shown = JSON.stringify(status.results);
    if (shown !== last.results) {
      last.results = shown;
      rebuild(results, () => resultsOf(context, test, status.results));
    }
  };

  const download = (name: string): void =>
    attempt(`Results of ${name}`, async () => {
      const response = await api.send('GET /tests/{test}/result', { path, signal });
      const file = `${name.replaceAll(/[^\w.-]/g, '-')}.json`;
      save(await readBody(response, () => undefined), file);
    });

  const readAgain = poll(
    async () => {
      try {
        const status = await api.call('GET /tests/{test}', { path, signal });
        problem.textContent = '';
        show(status);
        return status.test.state === 'running';
      } catch (error) {
        if (isAbort(error)) return false;
        problem.textContent = `The test is not current: ${messageOf(error)}`;
        return !(error instanceof ApiError && error.status === 404);
      }
    },
    INTERVAL_MS,
    signal,
  );
  return {
    title: `Test ${id}`,
    node: element(
      'section',
      {},
      element('p', {}, element('a', { href: '#/tests' }, 'All tests')),
      element('div', { class: 'run-head' }, title, badge),
      facts,
      problem,
      message,
      controls,
      phases,
      tiles,
      results,
      logTitle,
      log,
    ),
  };
}
