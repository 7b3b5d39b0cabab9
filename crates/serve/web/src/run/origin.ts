// How a run was started: its plan, which the editor opens again, and its options.

import { isAbort, messageOf } from '../api.ts';
import type { Context } from '../context.ts';
import type { RunOrigin, RunSummary } from '../documents.ts';
import { openDialog } from '../dialog.ts';
import { element, replace } from '../element.ts';
import { editPlan } from '../plan/view.ts';

/** Longest text of a plan in the dialog; the editor shows all of it. */
const TEXT_CHARACTERS_MAX = 20_000;

/** Opens the dialog of a run. */
export function originDialog({ api, signal }: Context, run: RunSummary): void {
  const name = run.name ?? run.id;
  let text: string | null = null;
  const content = element('div', {}, element('p', { class: 'hint' }, 'Loading…'));
  const dialog = openDialog(
    {
      title: `Plan and options of ${name}`,
      action: 'Open in the editor',
      cancel: 'Close',
      isWide: true,
      onAction: () => {
        if (text !== null) editPlan(text);
        return Promise.resolve();
      },
    },
    content,
  );
  const action = dialog.querySelector<HTMLButtonElement>('button[type=submit]')!;
  action.disabled = true;
  api
    .call('GET /runs/{run}/plan', { path: { run: run.id }, signal })
    .then((origin) => {
      text = textOf(origin);
      action.disabled = text === null;
      replace(content, facts(origin, run), plan(origin, run, text));
    })
    .catch((error: unknown) => {
      if (isAbort(error)) return;
      replace(content, element('p', { class: 'problem', role: 'alert' }, messageOf(error)));
    });
}

/** Returns the text of a plan that the editor shows; null for other sources. */
function textOf({ plan }: RunOrigin): string | null {
  if (!plan) return null;
  if ('text' in plan) return plan.text;
  return 'document' in plan ? JSON.stringify(plan.document, null, 2) : null;
}

function facts(origin: RunOrigin, run: RunSummary): HTMLElement {
  const map = (values: Readonly<Record<string, string>>): string =>
    Object.entries(values)
      .map(([name, value]) => (name === value ? name : `${name}: ${value}`))
      .join(', ');
  const start =
    typeof origin.start === 'string' ? origin.start.replaceAll('_', ' ') : 'at a given time';
  const ending = origin.when_lease_ends === 'stop' ? 'the run stops' : 'the run continues';
  const ofServer: Array<readonly [string, string]> = [
    ['Start', start],
    ['When a lease ends', ending],
    ['Ports shared', origin.shared ? 'with other runs of the user' : ''],
  ];
  const rows: Array<readonly [string, string]> = [
    ['Plan', origin.plan_name ?? ''],
    ['Ports', map(origin.ports)],
    ['Files', map(origin.files)],
    ...Object.entries(origin.options)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => [words(name), String(value)] as const),
    ...(isOfRequest(origin, run) ? ofServer : []),
    ['Command line', origin.command.join(' ')],
  ];
  return element(
    'dl',
    { class: 'facts' },
    rows
      .filter(([, value]) => value)
      .map(([name, value]) =>
        element('div', {}, element('dt', {}, name), element('dd', {}, value)),
      ),
  );
}

function words(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ');
}

/**
 * Returns whether a request to the API started the run. The history has only a command of runs of
 * the command line, and of clients of Open Traffic Generator and TRex.
 */
function isOfRequest(origin: RunOrigin, run: RunSummary): boolean {
  return !!run.user && (!!origin.plan || origin.command.length === 0);
}

/** Returns why there is no plan. */
function reason(origin: RunOrigin, run: RunSummary): string {
  if (!run.user)
    return run.kind === 'replay'
      ? 'replays of the command line have none'
      : 'the command line stores a plan of one file alone';
  return isOfRequest(origin, run)
    ? 'it keeps no streams and profiles of TRex above 1 MiB'
    : 'it keeps none of clients of Open Traffic Generator and TRex';
}

function plan(origin: RunOrigin, run: RunSummary, text: string | null): HTMLElement {
  if (!origin.plan)
    return element(
      'p',
      { class: 'hint' },
      `The history does not have the plan of this run: ${reason(origin, run)}.`,
    );
  const shown = text ?? JSON.stringify(origin.plan, null, 2);
  const isLong = shown.length > TEXT_CHARACTERS_MAX;
  return element(
    'div',
    {},
    text === null
      ? element('p', { class: 'hint' }, 'This is a request, not a plan that the editor shows.')
      : element('p', { class: 'hint' }, 'The editor drops changes that are not saved.'),
    element(
      'pre',
      { class: 'mono origin', tabindex: '0', 'aria-label': 'Plan' },
      isLong ? `${shown.slice(0, TEXT_CHARACTERS_MAX)}…` : shown,
    ),
  );
}
