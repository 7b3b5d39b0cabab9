// The form that starts a test.

import { messageOf } from '../api.ts';
import { type Context, disabledBy } from '../context.ts';
import type { AgentList } from '../documents.ts';
import { button, element, freshId, labelled } from '../element.ts';
import { bytes } from '../format.ts';

/** Longest test that the server takes, in bytes. */
const TEST_BYTES_MAX = 8 << 20;

/** A node of the example, with its interface. */
type Node = readonly [name: string, interfaceName: string];

export interface StartForm {
  node: HTMLElement;
  /** Sets the agents that the example uses. */
  setAgents: (list: AgentList) => void;
}

export function startForm({ api, me, store, signal }: Context): StartForm {
  let agents: AgentList | null = null;
  const refusal = me.refusal('POST /tests');
  const problem = element('p', { class: 'problem', role: 'alert', id: freshId('problem') });
  const text = element('textarea', {
    class: 'test-text mono',
    spellcheck: 'false',
    autocapitalize: 'off',
    'aria-describedby': problem.id,
    placeholder: 'name: two-nodes\nnodes: [tx, rx]\n…',
    ...disabledBy(refusal),
    on: { input: () => clear() },
  });
  const name = element('input', { type: 'text', maxlength: 64, ...disabledBy(refusal) });
  const file = element('input', {
    type: 'file',
    accept: '.yaml,.yml,.json',
    ...disabledBy(refusal),
    on: { change: () => read() },
  });
  const start = element(
    'button',
    { type: 'submit', class: 'primary', ...disabledBy(refusal) },
    'Start the test',
  );
  const clear = (): void => {
    problem.textContent = '';
    text.removeAttribute('aria-invalid');
  };
  const fail = (error: unknown): void => {
    problem.textContent = messageOf(error);
    text.setAttribute('aria-invalid', 'true');
  };
  const read = (): void => {
    const chosen = file.files?.[0];
    file.value = '';
    if (!chosen) return;
    clear();
    if (chosen.size > TEST_BYTES_MAX) {
      const most = bytes(TEST_BYTES_MAX);
      fail(new Error(`${chosen.name} has ${bytes(chosen.size)}, expected at most ${most}`));
      return;
    }
    chosen
      .text()
      .then((content) => {
        text.value = content;
      })
      .catch(fail);
  };
  const submit = async (): Promise<void> => {
    if (!text.value.trim()) {
      fail(new Error('There is no test: paste one, choose a file, or use the example.'));
      text.focus();
      return;
    }
    const test = await api.call('POST /tests', {
      body: { test: { text: text.value }, name: name.value.trim() || null },
      signal,
    });
    location.hash = `#/tests/${encodeURIComponent(test.id)}`;
  };
  const example = button(
    'Example',
    () => {
      clear();
      text.value = exampleOf(nodesOf(agents, store.ports.map((port) => port.name)));
      text.focus();
    },
    { title: 'Replace the text by a test with two nodes', ...disabledBy(refusal) },
  );
  const node = element(
    'form',
    {
      novalidate: true,
      on: {
        submit: (event) => {
          event.preventDefault();
          if (start.disabled) return;
          clear();
          start.disabled = true;
          submit()
            .catch((error: unknown) => {
              if (!signal.aborted) fail(error);
            })
            .finally(() => {
              start.disabled = refusal !== null;
            });
        },
      },
    },
    element(
      'div',
      { class: 'fields' },
      labelled('File', file, 'A test in YAML or JSON; its text appears below.'),
      labelled('Name', name, 'In the run history; empty: the name in the test.'),
    ),
    labelled(
      'Text of the test',
      text,
      'Files that the test names must be uploaded as captures first.',
    ),
    problem,
    element('div', { class: 'buttons' }, start, example),
  );
  return {
    node,
    setAgents: (list) => {
      agents = list;
    },
  };
}

/** Returns two nodes that exist: agents with their first interface, or ports of the server. */
function nodesOf(agents: AgentList | null, ports: readonly string[]): [Node, Node] {
  const [tx, rx] = (agents?.agents ?? []).filter((agent) => agent.state !== 'lost');
  const first = (agent: typeof tx, other: string): string =>
    agent?.interfaces.find((it) => it.link === 'up')?.interface ?? other;
  if (agents?.site)
    return [
      [tx?.name ?? 'tx', first(tx, 'eth1')],
      [rx?.name ?? 'rx', first(rx, 'eth1')],
    ];
  return [
    ['tx', ports[0] ?? 'eth1'],
    ['rx', ports[1] ?? 'eth2'],
  ];
}

function exampleOf([tx, rx]: [Node, Node]): string {
  const text = JSON.stringify;
  return `name: two-nodes
nodes: [${text(tx[0])}, ${text(rx[0])}]
ports:
  - {name: left, node: ${text(tx[0])}, interface: ${text(tx[1])}}
  - {name: right, node: ${text(rx[0])}, interface: ${text(rx[1])}}
runs:
  - name: flows
    streams:
      flows:
        - name: forward
          tx: left
          rx: right
          size: 128
          rate: 1kpps
          metrics: {enable: true}
          packet:
            - ethernet: {src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}
            - ipv4: {src: 198.18.0.1, dst: 198.18.0.2}
            - udp: {src_port: 1024, dst_port: 7}
duration: 10s
`;
}
