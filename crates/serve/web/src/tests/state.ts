// States of tests, and who may stop them.

import type { Context } from '../context.ts';
import { confirm } from '../dialog.ts';
import type { TestSummary } from '../documents.ts';
import { element } from '../element.ts';
import { done } from '../notice.ts';

/** Time between two reads of what changes. */
export const INTERVAL_MS = 1_000;

/** Phases of a test, in order. */
export const PHASES = ['agents', 'files', 'clocks', 'prepare', 'run', 'results'];

/** Creates the mark of the state of a test, with its phase. */
export function testBadge(test: TestSummary): HTMLElement {
  const isActive = test.state === 'running';
  const kind = isActive ? 'active' : test.state === 'failed' ? 'bad' : 'good';
  const text = test.is_stopping ? 'stopping' : test.state;
  const phase = isActive && !test.is_stopping && test.phase ? `, ${test.phase}` : '';
  return element('span', { class: `badge ${kind}` }, text + phase);
}

/** Returns the reason why the user cannot stop a test; null if it can. */
export function refusalOfStop({ me }: Context, test: TestSummary): string | null {
  const refusal = me.refusal('POST /tests/{test}/stop');
  if (refusal) return refusal;
  if (test.state !== 'running') return 'The test has ended.';
  if (test.is_stopping) return 'The test is stopping.';
  if (me.role === 'administer' || test.user === me.user) return null;
  return `The test belongs to ${test.user}; this needs the role administer.`;
}

/** Asks whether to stop a test, and stops it. */
export function askToStop({ api }: Context, test: TestSummary, onStopped: () => void): void {
  confirm(
    `Stop test ${test.name}?`,
    'Stop the test',
    async () => {
      await api.call('POST /tests/{test}/stop', { path: { test: test.id } });
      done(`Test ${test.name} is stopping.`);
      onStopped();
    },
    element('p', {}, 'All its runs stop. The results so far are kept.'),
  );
}
