// A run: live charts, commands, and its result.

import { ApiError } from '../api.ts';
import { type Context, disabledBy, type View } from '../context.ts';
import type { CommandRequest, RunSummary } from '../documents.ts';
import { confirm } from '../dialog.ts';
import { openReport, save } from '../download.ts';
import { button, element, labelled, rebuild, replace } from '../element.ts';
import { duration, many, owner, time } from '../format.ts';
import { attempt, done, failed } from '../notice.ts';
import { stateBadge } from '../runs.ts';
import { isActive } from '../runstate.ts';
import { follow } from '../stream.ts';
import { FLOWS_MAX } from './delaymap.ts';
import { History } from './history.ts';
import { Live } from './live.ts';
import { originDialog } from './origin.ts';
import { resultView } from './result.ts';

const INTERVAL_MS = 1_000;

export function runView(context: Context, id: string): View {
  const { store, signal } = context;
  const node = element('section', {}, element('p', { class: 'hint' }, 'Loading…'));
  const known = store.runs.get(id);
  const show = (run: RunSummary): void => {
    new RunPage(context, run, node).start();
  };
  if (known) {
    show(known);
  } else {
    context.api
      .call('GET /runs/{run}', { path: { run: id }, signal })
      .then(show)
      .catch((error: unknown) => {
        if (signal.aborted) return;
        replace(
          node,
          element('h1', {}, 'Run'),
          element(
            'p',
            { class: 'problem', role: 'alert' },
            error instanceof ApiError ? error.text : String(error),
          ),
          element('p', {}, element('a', { href: '#/runs' }, 'All runs')),
        );
      });
  }
  return { title: known?.name ?? id, node };
}

class RunPage {
  private readonly history = new History();
  private readonly live: Live;
  private readonly head = element('div', { class: 'run-head' });
  private readonly facts = element('dl', { class: 'facts' });
  private readonly message = element('p', { class: 'message', role: 'status' });
  private readonly controls = element('div', {
    class: 'controls',
    role: 'group',
    'aria-label': 'Commands',
  });
  private readonly scope = element('p', { class: 'hint' });
  private readonly body = element('div');
  private waitingFor: string | null = null;
  private pausedFlows: readonly string[] = [];
  private shownControls = '';
  private isOver = false;

  constructor(
    private readonly context: Context,
    private run: RunSummary,
    private readonly node: HTMLElement,
  ) {
    const canCommand = context.me.refusalOfRun('POST /runs/{run}/commands', run) === null;
    this.live = new Live(this.history, context.signal, canCommand && run.kind === 'streams', () =>
      this.showScope(),
    );
  }

  start(): void {
    replace(this.node, this.head, this.facts, this.message, this.controls, this.scope, this.body);
    this.showRun();
    const { store, signal } = this.context;
    store.subscribe(() => {
      const run = store.runs.get(this.run.id);
      if (!run || run === this.run) return;
      this.run = run;
      this.showRun();
      if (!isActive(run)) this.end();
    }, signal);
    if (isActive(this.run)) this.follow();
    else this.end();
  }

  private follow(): void {
    const { api, signal } = this.context;
    replace(this.body, this.live.node);
    const request = {
      path: { run: this.run.id },
      query: { interval_ms: INTERVAL_MS, delays: FLOWS_MAX },
    };
    void follow(api, 'GET /runs/{run}/events', request, signal, {
      onEvent: (progress) => {
        this.live.add(progress);
        this.waitingFor = progress.waiting_for ?? null;
        const { state, is_paused } = progress;
        const isChanged = state !== this.run.state || is_paused !== this.run.is_paused;
        if (isChanged && isActive(progress)) this.run = { ...this.run, state, is_paused };
        this.pausedFlows = progress.flows.filter((it) => it.is_paused).map((it) => it.name);
        this.showRun();
        this.live.update();
      },
      isLast: (progress) => !isActive(progress),
      // The run has ended, and the server does not hold it any longer.
      onRefused: (error) => {
        if (error.status !== 401) this.readSummary();
      },
    }).then(() => {
      if (!signal.aborted) this.readSummary();
    });
  }

  private readSummary(): void {
    const { api, store, signal } = this.context;
    api
      .call('GET /runs/{run}', { path: { run: this.run.id }, signal })
      .then((run) => {
        this.run = run;
        store.putRun(run);
        this.showRun();
        if (!isActive(run)) this.end();
      })
      .catch((error: unknown) => {
        if (!signal.aborted) failed('Run', error);
      });
  }

  private showRun(): void {
    const { run } = this;
    const { me } = this.context;
    const state = `${run.state}/${run.is_paused}/${run.outcome ?? ''}`;
    if (this.head.dataset['state'] !== state) {
      this.head.dataset['state'] = state;
      replace(
        this.head,
        element('h1', {}, run.name ?? run.id),
        stateBadge(run),
        !run.is_saved && element('span', { class: 'badge bad' }, 'not saved'),
        button('Plan and options', () => originDialog(this.context, run), { class: 'small' }),
      );
      const end = run.ended_unix_ns;
      replace(
        this.facts,
        ...[
          ['ID', run.id],
          ['Kind', run.kind],
          ['Owner', run.user ? owner(run.user, run.session) : 'the command line'],
          ['Interfaces', run.interfaces.join(', ') || '–'],
          ['Start', time(run.created_unix_ns)],
          ...(end
            ? [['End', `${time(end)}, after ${duration((end - run.created_unix_ns) / 1e9)}`]]
            : []),
        ].map(([name, value]) =>
          element('div', {}, element('dt', {}, name), element('dd', {}, value)),
        ),
      );
    }
    const isPaused = isActive(run) && run.is_paused;
    const paused = isPaused
      ? 'The run is paused'
      : isActive(run) && this.pausedFlows.length > 0
        ? `${many(this.pausedFlows.length, 'flow is', 'flows are')} paused`
        : null;
    const text = [this.waitingFor && `Waiting for ${this.waitingFor}`, paused, run.message]
      .filter(Boolean)
      .join('. ');
    if (this.message.textContent !== text) this.message.textContent = text;
    this.message.hidden = !text;
    this.message.classList.toggle('problem', run.state === 'failed' || run.state === 'died');
    const refusal = me.refusalOfRun('POST /runs/{run}/commands', run);
    const waits = run.state === 'prepared' || run.state === 'preparing';
    const signature = `${isActive(run)}/${waits}/${refusal}/${run.kind}/${paused !== null}`;
    if (signature === this.shownControls) return;
    this.shownControls = signature;
    this.showControls(refusal, waits, paused !== null);
  }

  private showControls(refusal: string | null, waits: boolean, isPaused: boolean): void {
    const { run } = this;
    this.controls.hidden = !isActive(run);
    this.scope.hidden = !isActive(run);
    if (!isActive(run)) {
      replace(this.controls);
      return;
    }
    const disabled = disabledBy(refusal);
    const hasFlows = run.kind === 'streams';
    const simple = (
      label: string,
      command: () => CommandRequest,
      text: string,
      kind = '',
    ): HTMLElement =>
      button(label, () => this.command(label, command(), text), {
        'data-key': label,
        class: kind,
        ...disabled,
      });
    const flows = (): { flows?: string[] } =>
      hasFlows && this.live.chosen.size ? { flows: [...this.live.chosen] } : {};
    const rate = element('input', {
      type: 'text',
      placeholder: '10kpps',
      name: 'rate',
      spellcheck: 'false',
      ...disabled,
    });
    const factor = element('input', {
      type: 'text',
      placeholder: '50% or 2',
      name: 'factor',
      spellcheck: 'false',
      ...disabled,
    });
    const form = (
      label: string,
      input: HTMLInputElement,
      name: string,
      command: (value: string) => CommandRequest,
    ): HTMLElement =>
      element(
        'form',
        {
          class: 'command',
          novalidate: true,
          on: {
            submit: (event) => {
              event.preventDefault();
              const value = input.value.trim();
              if (value) this.command(label, command(value), `${label}: ${value}.`);
              else input.focus();
            },
          },
        },
        labelled(name, input),
        element('button', { type: 'submit', ...disabled }, label),
      );
    rebuild(this.controls, () => [
      waits && simple('Start', () => ({ command: 'start' }), 'The run starts.', 'primary'),
      simple('Pause', () => ({ command: 'pause', ...flows() }), 'Paused.'),
      simple(
        'Resume',
        () => this.resume(flows()),
        'Resumed.',
        isPaused ? 'primary' : '',
      ),
      button(
        'Stop',
        () =>
          confirm(
            'Stop the run?',
            'Stop the run',
            async () => {
              await this.send({ command: 'stop' });
              done('The run stops.');
            },
            element('p', {}, 'Its result covers what was sent so far.'),
          ),
        { class: 'danger', 'data-key': 'stop', ...disabled },
      ),
      run.kind === 'emulation' &&
        simple('End load', () => ({ command: 'end_load' }), 'No new connections start.'),
      hasFlows &&
        form('Set rate', rate, 'Rate', (value) => ({ command: 'rate', rate: value, ...flows() })),
      (hasFlows || run.kind === 'emulation') &&
        form('Scale', factor, 'Factor', (value) => ({
          command: 'scale',
          factor: value,
          ...flows(),
        })),
    ]);
    this.showScope(refusal);
  }

  /** Returns the command that resumes the run or the chosen flows, else all that are paused. */
  private resume(chosen: { flows?: string[] }): CommandRequest {
    const isOfFlows = !chosen.flows && !this.run.is_paused && this.pausedFlows.length > 0;
    return { command: 'resume', ...(isOfFlows ? { flows: [...this.pausedFlows] } : chosen) };
  }

  private showScope(refusal: string | null = null): void {
    if (refusal) {
      this.scope.textContent = refusal;
    } else if (this.run.kind === 'streams') {
      const { size } = this.live.chosen;
      this.scope.textContent = size
        ? `Pause, resume, rate and factor apply to the ${size} chosen flows; stop to the run.`
        : 'Pause, resume, rate and factor apply to all flows, or to those that you choose in the ' +
          'table. A factor refers to the rates of the start.';
    } else {
      this.scope.textContent = '';
    }
  }

  private command(label: string, command: CommandRequest, text: string): void {
    attempt(label, async () => {
      await this.send(command);
      done(text);
    });
  }

  private async send(command: CommandRequest): Promise<void> {
    const run = await this.context.api.call('POST /runs/{run}/commands', {
      path: { run: this.run.id },
      body: command,
    });
    this.context.store.putRun(run);
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    const { api, signal } = this.context;
    const path = { run: this.run.id };
    const name = this.run.name ?? this.run.id;
    const links = element(
      'div',
      { class: 'controls' },
      button(
        'Open the report',
        () =>
          attempt('Report', async () => {
            openReport(await api.call('GET /runs/{run}/report', { path }), name);
          }),
        { class: 'primary' },
      ),
      ...(
        [
          ['Markdown', 'markdown', 'md'],
          ['JUnit', 'junit', 'xml'],
        ] as const
      ).map(([label, format, ending]) =>
        button(`${label} report`, () =>
          attempt('Report', async () => {
            const text = await (
              await api.send('GET /runs/{run}/report', { path, query: { format } })
            ).text();
            save(new Blob([text], { type: 'text/plain' }), `${name}.${ending}`);
            done(`Saved ${name}.${ending}`);
          }),
        ),
      ),
      button('Result as JSON', () =>
        attempt('Result', async () => {
          const text = await (await api.send('GET /runs/{run}/result', { path })).text();
          save(new Blob([text], { type: 'application/json' }), `${name}.json`);
          done(`Saved ${name}.json`);
        }),
      ),
    );
    const result = element('div', {}, element('p', { class: 'hint' }, 'Loading the result…'));
    const hasLive = this.history.samples.length > 0;
    replace(
      this.body,
      links,
      result,
      hasLive &&
        element(
          'details',
          { open: true, class: 'after' },
          element('summary', {}, 'Live charts of this page'),
          this.live.node,
        ),
    );
    if (hasLive) this.live.end();
    api
      .call('GET /runs/{run}/result', { path, signal })
      .then((document) => {
        replace(result, resultView(document, signal));
      })
      .catch((error: unknown) => {
        if (signal.aborted) return;
        const text = error instanceof ApiError ? error.text : String(error);
        replace(result, element('p', { class: 'hint' }, `No result: ${text}`));
      });
  }
}
