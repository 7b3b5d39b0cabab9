// Tests across machines: agents, a form to start a test, and the tests of the server.

import { isAbort, messageOf } from '../api.ts';
import { type Context, disabledBy, type View } from '../context.ts';
import type { Agent, AgentList, TestSummary } from '../documents.ts';
import { button, element, marked, replace } from '../element.ts';
import { duration, owner, speed, time } from '../format.ts';
import { cell, numberCell, Rows, table } from '../list.ts';
import { poll } from '../poll.ts';
import { LINKS } from '../ports.ts';
import { startForm } from './start.ts';
import { askToStop, INTERVAL_MS, refusalOfStop, testBadge } from './state.ts';

/** Interfaces that a row shows. */
const INTERFACES_MAX = 8;
/** Time since the last message of an agent that is nothing unusual. */
const RECENT_S = 2;

export function testsView(context: Context): View {
  const { api, me, signal } = context;
  const problem = element('p', { class: 'problem', role: 'status' });
  const reason = element('p', { class: 'reason', hidden: true });
  const none = element('p', { class: 'empty', hidden: true }, 'No tests yet.');
  const agentRows = new Rows<Agent>(
    (agent) => agent.name,
    agentCells,
    (agent) => JSON.stringify({ ...agent, seen_s: seen(agent) }),
  );
  const agents = table(
    'Agents',
    ['Agent', 'State', 'Interfaces', 'Clock comparisons', 'Last seen'].map((label) => ({ label })),
    agentRows.body,
    { hidden: true },
  );
  const testRows = new Rows<TestSummary>(
    (test) => test.id,
    (test) => testCells(context, test, () => readAgain()),
  );
  const tests = table(
    'Tests',
    ['Test', 'State', 'User', 'Nodes', 'Start', 'Time', 'Actions'].map((label) => ({
      label,
      isNumber: label === 'Time',
    })),
    testRows.body,
    { hidden: true },
  );
  const form = startForm(context);
  const showAgents = (list: AgentList): void => {
    form.setAgents(list);
    agentRows.update(list.agents);
    agents.hidden = list.agents.length === 0;
    reason.hidden = !list.reason;
    const text = list.reason ?? '';
    if (reason.dataset['text'] === text) return;
    reason.dataset['text'] = text;
    replace(reason, marked(text));
  };
  const readAgain = poll(
    async () => {
      try {
        const [list, all] = await Promise.all([
          api.call('GET /agents', { signal }),
          api.call('GET /tests', { signal }),
        ]);
        showAgents(list);
        testRows.update(all);
        tests.hidden = all.length === 0;
        none.hidden = all.length > 0;
        problem.textContent = '';
      } catch (error) {
        if (!isAbort(error)) problem.textContent = `The lists are not current: ${messageOf(error)}`;
      }
    },
    INTERVAL_MS,
    signal,
  );
  const refusal = me.refusal('POST /tests');
  return {
    title: 'Tests',
    node: element(
      'section',
      {},
      element('h1', {}, 'Tests'),
      element(
        'p',
        { class: 'lead' },
        'A test starts runs on several machines together, compares their clocks, and merges the ',
        'results.',
      ),
      problem,
      element('h2', {}, 'Agents'),
      reason,
      agents,
      element('h2', {}, 'Start a test'),
      refusal && element('p', { class: 'reason' }, refusal),
      form.node,
      element('h2', {}, 'Active and past tests'),
      none,
      tests,
    ),
  };
}

function agentCells(agent: Agent): HTMLTableCellElement[] {
  const kinds = { idle: 'good', busy: 'active', lost: 'bad' } as const;
  const rest = agent.interfaces.length - INTERFACES_MAX;
  return [
    cell(
      'Agent',
      element('strong', {}, agent.name),
      element('span', { class: 'sub' }, `${agent.host}, version ${agent.version}`),
    ),
    cell(
      'State',
      element('span', { class: `badge ${kinds[agent.state]}` }, agent.state),
      agent.test &&
        element(
          'a',
          { class: 'sub', href: `#/tests/${encodeURIComponent(agent.test)}` },
          `test ${agent.test}`,
        ),
    ),
    cell(
      'Interfaces',
      agent.interfaces
        .slice(0, INTERFACES_MAX)
        .map((it) =>
          element(
            'div',
            {},
            `${it.interface} `,
            element('span', { class: `badge ${it.link === 'up' ? 'good' : 'bad'}` }, LINKS[it.link]),
            it.speed_bps ? ` ${speed(it.speed_bps)}` : null,
          ),
        ),
      rest > 0 && element('span', { class: 'sub' }, `and ${rest} more`),
      agent.interfaces.length === 0 && '–',
    ),
    cell('Clock comparisons', agent.reflector.join(', ') || 'none'),
    cell('Last seen', seen(agent)),
  ];
}

function seen(agent: Agent): string {
  return agent.seen_s < RECENT_S ? 'now' : `${duration(Math.floor(agent.seen_s))} ago`;
}

function testCells(
  context: Context,
  test: TestSummary,
  onStopped: () => void,
): HTMLTableCellElement[] {
  const end = test.ended_unix_ns;
  return [
    cell(
      'Test',
      element('a', { href: `#/tests/${encodeURIComponent(test.id)}` }, test.name),
      element('span', { class: 'sub' }, test.id),
    ),
    cell('State', testBadge(test), test.message && element('span', { class: 'sub' }, test.message)),
    cell('User', owner(test.user, test.session)),
    cell(
      'Nodes',
      test.agents.join(', '),
      !test.on_bus && element('span', { class: 'sub' }, 'on the server'),
    ),
    cell('Start', time(test.created_unix_ns)),
    numberCell('Time', end ? duration((end - test.created_unix_ns) / 1e9) : '–'),
    element(
      'td',
      { class: 'actions' },
      test.state === 'running' &&
        button('Stop', () => askToStop(context, test, onStopped), {
          class: 'small',
          'data-key': 'stop',
          'aria-label': `Stop ${test.name}`,
          ...disabledBy(refusalOfStop(context, test)),
        }),
    ),
  ];
}
