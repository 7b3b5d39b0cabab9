// The plan editor: forms or text at the left, the frames at the right.

import { ApiError, isAbort, messageOf } from '../api.ts';
import { type Context, disabledBy, type View } from '../context.ts';
import type { ErrorAt, FlowFrames, PlanSummary, RunRequest } from '../documents.ts';
import { confirm } from '../dialog.ts';
import { button, element, labelled, rebuild, replace, select } from '../element.ts';
import { count, many } from '../format.ts';
import { attempt, done, failed } from '../notice.ts';
import { example, isObject, type Json, newFlow, Plan, serialize } from './document.ts';
import { focusError, placeErrors } from './errors.ts';
import { flowForm } from './flow.ts';
import { portNames, portsForm } from './ports.ts';
import { Preview } from './preview.ts';
import { runDialog } from './rundialog.ts';
import { PlanSchema, type Schema } from './schema.ts';
import { storedDialog } from './stored.ts';

const CHECK_MS = 350;
const FRAMES = 8;
/** Most frames of a request, of all flows together. */
const FRAMES_MAX = 10_000;
const FLOWS_MAX = 500;
const ERRORS_MAX = 50;

let plan: Plan | null = null;
/** The schema does not change while the server runs. */
let schema: PlanSchema | null = null;

export function planView(context: Context, name: string | null): View {
  plan ??= Plan.restore();
  const node = element('section', {}, element('p', { class: 'hint' }, 'Loading…'));
  const open = plan;
  const start = async (): Promise<void> => {
    schema ??= new PlanSchema(
      (await context.api.call('GET /schemas/{name}', {
        path: { name: 'plan' },
        signal: context.signal,
      })) as Schema,
    );
    if (name !== null && name !== open.name)
      open.load(
        await context.api.call('GET /plans/{name}', { path: { name }, signal: context.signal }),
        name,
      );
    if (!context.signal.aborted) new Editor(context, open, schema, node).start();
  };
  start().catch((error: unknown) => {
    if (isAbort(error) || context.signal.aborted) return;
    replace(
      node,
      element('h1', {}, 'Plan'),
      element('p', { class: 'problem', role: 'alert' }, messageOf(error)),
    );
  });
  return { title: 'Plan', node };
}

/** Opens a text as a plan without a name, and goes to the editor. */
export function editPlan(text: string): void {
  plan ??= Plan.restore();
  plan.load(text, '');
  location.hash = '#/plan';
}

class Editor {
  private flow = 0;
  private isText = false;
  private errors: readonly ErrorAt[] = [];
  private summary: PlanSummary | null = null;
  private request: AbortController | null = null;
  private timer = 0;
  private frames: readonly FlowFrames[] = [];
  private readonly preview = new Preview();
  private readonly list = element('div', { class: 'flow-list' });
  private readonly form = element('div');
  private readonly forms = element('div', {
    class: 'forms',
    id: 'plan-forms',
    role: 'tabpanel',
    'aria-labelledby': 'tab-forms',
  });
  private readonly area = element('textarea', {
    class: 'mono plan-text',
    spellcheck: 'false',
    autocapitalize: 'off',
    'aria-label': 'Text of the plan',
  });
  private readonly areaNote = element('p', { class: 'hint', role: 'status' });
  private readonly texts = element(
    'div',
    { id: 'plan-texts', role: 'tabpanel', 'aria-labelledby': 'tab-text' },
    this.area,
    this.areaNote,
  );
  private readonly verdict = element('div', { class: 'verdict', role: 'status' });
  private readonly flowChoice = select([], {
    'aria-label': 'Flow of the frames',
    on: { change: () => this.showFrames() },
  });
  private readonly name: HTMLInputElement;
  private readonly tabs: HTMLButtonElement[];

  constructor(
    private readonly context: Context,
    private readonly plan: Plan,
    private readonly schema: PlanSchema,
    private readonly node: HTMLElement,
  ) {
    this.name = element('input', {
      type: 'text',
      value: plan.name,
      placeholder: 'my-plan',
      name: 'plan-name',
      spellcheck: 'false',
    });
    this.tabs = [
      element(
        'button',
        {
          type: 'button',
          role: 'tab',
          id: 'tab-forms',
          'aria-controls': 'plan-forms',
          on: { click: () => this.showTab(false) },
        },
        'Forms',
      ),
      element(
        'button',
        {
          type: 'button',
          role: 'tab',
          id: 'tab-text',
          'aria-controls': 'plan-texts',
          on: { click: () => this.showTab(true) },
        },
        'Text',
      ),
    ];
    this.area.addEventListener('input', () => {
      plan.setText(this.area.value);
      this.showAreaNote();
    });
    this.preview.onField = (header, protocol, field) => this.focusField(header, protocol, field);
    this.preview.node.insertBefore(this.flowChoice, this.preview.node.children[1]!);
    this.forms.addEventListener('focusin', (event) => this.highlight(event.target as HTMLElement));
    this.forms.addEventListener('mouseover', (event) =>
      this.highlight(event.target as HTMLElement),
    );
  }

  start(): void {
    const { me, signal } = this.context;
    const tablist = element(
      'div',
      {
        role: 'tablist',
        'aria-label': 'Plan',
        class: 'tabs',
        on: { keydown: (event) => this.tabKey(event) },
      },
      this.tabs,
    );
    replace(
      this.node,
      element('h1', {}, 'Plan'),
      element(
        'form',
        {
          class: 'toolbar',
          novalidate: true,
          on: {
            submit: (event) => {
              event.preventDefault();
              this.save();
            },
          },
        },
        labelled('Name', this.name),
        element(
          'button',
          { type: 'submit', ...disabledBy(me.refusal('PUT /plans/{name}')) },
          'Save',
        ),
        button('Open…', () => storedDialog(this.context, (name, text) => this.open(name, text))),
        button('New', () =>
          confirm(
            'Begin a new plan?',
            'New plan',
            async () => this.open('', serialize(example())),
            element('p', {}, 'Changes that are not saved are lost.'),
          ),
        ),
        button('Run…', () => this.run(), {
          class: 'primary',
          ...disabledBy(me.refusal('POST /runs')),
        }),
      ),
      me.refusal('POST /runs') && element('p', { class: 'reason' }, me.refusal('POST /runs')),
      this.verdict,
      element(
        'div',
        { class: 'editor' },
        element('div', { class: 'editor-main' }, tablist, this.forms, this.texts),
        this.preview.node,
      ),
    );
    this.plan.subscribe(() => this.changed(), signal);
    signal.addEventListener('abort', () => {
      clearTimeout(this.timer);
      this.request?.abort();
    });
    this.showTab(this.plan.document === null);
    this.check();
  }

  // Tabs

  private showTab(isText: boolean): void {
    this.isText = isText;
    this.tabs.forEach((tab, at) => {
      const isCurrent = (at === 1) === isText;
      tab.setAttribute('aria-selected', String(isCurrent));
      tab.tabIndex = isCurrent ? 0 : -1;
    });
    this.forms.hidden = isText;
    this.texts.hidden = !isText;
    if (isText) {
      this.area.value = this.plan.text;
      this.showAreaNote();
    } else {
      this.buildForms();
    }
  }

  private tabKey(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -1, End: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const tab = this.tabs[step > 0 ? 1 : 0]!;
    tab.focus();
    tab.click();
  }

  private showAreaNote(): void {
    this.areaNote.textContent =
      this.plan.document === null
        ? `${this.plan.reason} The server checks and runs it as it is. Forms need JSON.`
        : 'JSON: the forms follow the text. YAML works too, without forms.';
  }

  // Forms

  private buildForms(): void {
    const { document } = this.plan;
    if (!document) {
      replace(
        this.forms,
        element(
          'p',
          { class: 'reason' },
          `${this.plan.reason} Forms need the JSON of a plan of streams; edit this plan as text.`,
        ),
      );
      return;
    }
    const again = (): void => {
      this.buildList();
      this.buildFlow();
    };
    replace(
      this.forms,
      element('h2', {}, 'Ports'),
      portsForm(this.schema, this.plan.root, again),
      element('h2', {}, 'Flows'),
      this.list,
      this.form,
    );
    again();
  }

  private buildList(): void {
    const slot = this.plan.root.key('flows');
    const flows = slot.list;
    this.flow = Math.min(this.flow, Math.max(0, flows.length - 1));
    const names = new Set(flows.map((flow) => (isObject(flow) ? flow['name'] : null)));
    const fresh = (base: string): string => {
      let number = 2;
      while (names.has(`${base} ${number}`)) number += 1;
      return names.has(base) ? `${base} ${number}` : base;
    };
    const set = (list: Json[], flow: number, focus?: string): void => {
      slot.set(list);
      this.flow = flow;
      this.buildList();
      this.buildFlow();
      if (focus) this.list.querySelector<HTMLElement>(`[data-key="${focus}"]`)?.focus();
    };
    const move = (to: number, key: string): void => {
      const list = [...slot.list];
      list.splice(to, 0, ...list.splice(this.flow, 1));
      set(list, to, key);
    };
    const current = flows[this.flow];
    rebuild(this.list, () => [
      element(
        'ol',
        { class: 'flows' },
        flows.slice(0, FLOWS_MAX).map((flow, at) => {
          const errors = this.errors.filter(({ path }) => path.startsWith(`flows[${at}]`)).length;
          return element(
            'li',
            {},
            button(
              String((isObject(flow) && flow['name']) || `flow ${at + 1}`),
              () => {
                this.flow = at;
                this.buildList();
                this.buildFlow();
              },
              {
                class: 'flow-choice',
                'data-key': `flow${at}`,
                'aria-current': at === this.flow ? 'true' : null,
              },
            ),
            errors > 0 && element('span', { class: 'badge bad' }, many(errors, 'error')),
          );
        }),
      ),
      flows.length > FLOWS_MAX &&
        element(
          'p',
          { class: 'hint' },
          `The first ${count(FLOWS_MAX)} of ${count(flows.length)} flows; the text has all.`,
        ),
      element(
        'div',
        { class: 'buttons' },
        button(
          'Add flow',
          () => {
            const ports = portNames(this.plan.root);
            set(
              [...slot.list, newFlow(fresh('flow'), ports[0] ?? '', ports[1] ?? null)],
              flows.length,
              'add-flow',
            );
          },
          { 'data-key': 'add-flow' },
        ),
        button(
          'Copy',
          () => {
            const copy = structuredClone(slot.list[this.flow]!);
            if (isObject(copy)) copy['name'] = fresh(`${String(copy['name'] ?? 'flow')} copy`);
            set(
              [...slot.list.slice(0, this.flow + 1), copy, ...slot.list.slice(this.flow + 1)],
              this.flow + 1,
              'copy-flow',
            );
          },
          {
            'data-key': 'copy-flow',
            'aria-label': 'Copy the flow',
            disabled: current === undefined,
          },
        ),
        button(
          'Delete',
          () =>
            set(
              slot.list.filter((_, at) => at !== this.flow),
              Math.max(0, this.flow - 1),
              'add-flow',
            ),
          {
            'data-key': 'delete-flow',
            'aria-label': 'Delete the flow',
            disabled: current === undefined,
          },
        ),
        button('↑', () => move(this.flow - 1, 'up-flow'), {
          'data-key': 'up-flow',
          'aria-label': 'Move the flow up',
          disabled: this.flow === 0,
        }),
        button('↓', () => move(this.flow + 1, 'down-flow'), {
          'data-key': 'down-flow',
          'aria-label': 'Move the flow down',
          disabled: this.flow >= flows.length - 1,
        }),
      ),
    ]);
  }

  private buildFlow(): void {
    const slot = this.plan.root.key('flows');
    if (!slot.list.length) {
      replace(this.form, element('p', { class: 'empty' }, 'The plan has no flows.'));
      return;
    }
    const open = this.flow;
    rebuild(this.form, () => [
      flowForm(this.schema, slot.at(open), portNames(this.plan.root), () => this.buildList()),
    ]);
    placeErrors(this.forms, this.errors);
    this.schedule();
  }

  // Check and frames

  private changed(): void {
    if (!this.isText && this.plan.document === null) this.showTab(true);
    this.schedule();
  }

  private schedule(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.check(), CHECK_MS);
  }

  private check(): void {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const { api } = this.context;
    const { text } = this.plan;
    const work = async (): Promise<void> => {
      const summary = await api.call('POST /plans/check', { body: text, signal: request.signal });
      // The next check follows the change.
      if (text !== this.plan.text) return;
      this.summary = summary;
      this.errors = summary.errors;
      this.showErrors();
      const frames = this.framesRequest(summary);
      if (typeof frames === 'string') {
        this.preview.fail(frames);
        return;
      }
      try {
        this.frames = await api.call('POST /plans/frames', {
          query: { count: frames.count },
          body: frames.text,
          signal: request.signal,
        });
        this.showFrames();
      } catch (error) {
        if (!(error instanceof ApiError) || error.status === 0) throw error;
        this.preview.fail(error.text);
      }
    };
    work().catch((error: unknown) => {
      if (isAbort(error)) return;
      this.preview.fail(messageOf(error));
      replace(
        this.verdict,
        element('p', { class: 'problem' }, `The plan was not checked: ${messageOf(error)}`),
      );
    });
  }

  /**
   * Returns the plan whose frames are shown: the flow of the form alone, as plans can have many.
   * A text is the reason why there are no frames.
   */
  private framesRequest(summary: PlanSummary): { text: string; count: number } | string {
    const { document, text } = this.plan;
    if (!document) {
      const flows = summary.flows.length;
      if (summary.errors.length) return 'The frames appear when the plan has no errors.';
      if (summary.kind !== 'streams') return 'Frames exist for plans of streams only.';
      return {
        text,
        count: Math.max(1, Math.min(FRAMES, Math.floor(FRAMES_MAX / Math.max(flows, 1)))),
      };
    }
    const flow = this.plan.root.key('flows').list[this.flow];
    if (!isObject(flow)) return 'The plan has no flows.';
    // Errors of other flows do not matter.
    const isOther = ({ path }: ErrorAt): boolean =>
      path.startsWith('flows[') && !path.startsWith(`flows[${this.flow}]`);
    if (!summary.errors.every(isOther)) return 'The frames appear when the flow has no errors.';
    // Its successor is not in the plan.
    const { next: _, start: __, ...alone } = flow;
    return { text: JSON.stringify({ ...document, flows: [alone] }), count: FRAMES };
  }

  private showFrames(): void {
    const names = this.frames.map((flow) => flow.flow);
    this.flowChoice.hidden = names.length < 2;
    const chosen = this.flowChoice.selectedIndex;
    if (names.join('\n') !== [...this.flowChoice.options].map((it) => it.value).join('\n')) {
      replace(
        this.flowChoice,
        names.slice(0, FLOWS_MAX).map((name) => element('option', { value: name }, name)),
      );
      this.flowChoice.selectedIndex = 0;
    }
    this.preview.show(this.frames[Math.max(0, chosen)] ?? this.frames[0] ?? null);
    // The frames may arrive after the field has got the focus.
    if (this.forms.contains(document.activeElement))
      this.highlight(document.activeElement as HTMLElement);
  }

  private showErrors(): void {
    const { errors } = this;
    if (this.plan.document && !this.isText) {
      placeErrors(this.forms, errors);
      this.buildList();
    }
    if (!errors.length) {
      const { kind, flows, ports } = this.summary ?? { kind: null, flows: [], ports: [] };
      const part = kind === 'emulation' ? 'template' : 'flow';
      replace(
        this.verdict,
        element(
          'p',
          { class: 'good-text' },
          kind
            ? `The plan has no errors: ${many(flows.length, part)}, ${many(ports.length, 'port')}.`
            : 'The text is no plan.',
        ),
      );
      return;
    }
    replace(
      this.verdict,
      element(
        'details',
        { class: 'error-list', open: errors.length <= 3 || this.isText },
        element('summary', {}, `The plan has ${many(errors.length, 'error')}`),
        element(
          'ul',
          {},
          errors
            .slice(0, ERRORS_MAX)
            .map(({ path, message }) =>
              element(
                'li',
                {},
                path &&
                  (this.plan.document && !this.isText
                    ? button(path, () => this.goTo(path), { class: 'link mono' })
                    : element('code', {}, path)),
                path && ': ',
                message,
              ),
            ),
        ),
      ),
    );
  }

  private goTo(path: string): void {
    const flow = /^flows\[(\d+)\]/.exec(path)?.[1];
    if (flow !== undefined && Number(flow) !== this.flow) {
      this.flow = Number(flow);
      this.buildList();
      this.buildFlow();
    }
    focusError(this.forms, path);
  }

  /** Highlights the bytes of the field that has the focus or the pointer. */
  private highlight(target: HTMLElement): void {
    const path = target.closest<HTMLElement>('.field')?.dataset['path'];
    const found = /^flows\[\d+\]\.packet\[(\d+)\]\.(\w+)\.(\w+)$/.exec(path ?? '');
    if (found) this.preview.highlightField(Number(found[1]), found[2]!, found[3]!);
  }

  /** Moves the focus to the form of a field of the frame. */
  private focusField(header: number, protocol: string, field: string): void {
    if (!this.plan.document || this.isText) return;
    const path = `flows[${this.flow}].packet[${header}].${protocol}`;
    const card = this.forms.querySelector<HTMLElement>(
      `.header[data-path="flows[${this.flow}].packet[${header}]"]`,
    );
    const more = card?.querySelector<HTMLDetailsElement>('details.more');
    const row = `.field[data-path="${path}.${field}"]`;
    const find = (): HTMLElement | null =>
      this.forms.querySelector<HTMLElement>(`${row} input`) ??
      this.forms.querySelector<HTMLElement>(`${row} select`);
    if (!find() && more) more.open = true;
    // The other fields appear after the event of the details.
    window.setTimeout(() => find()?.focus(), 50);
  }

  // Commands

  private open(name: string, text: string): void {
    this.plan.load(text, name);
    this.name.value = name;
    this.flow = 0;
    this.frames = [];
    this.showTab(this.plan.document === null);
    this.check();
    if (name) done(`Opened plan ${name}.`);
  }

  private save(): void {
    const name = this.name.value.trim();
    if (!name) {
      failed('Save', new Error('enter a name for the plan'));
      this.name.focus();
      return;
    }
    const { api } = this.context;
    const store = (): Promise<void> =>
      api.call('PUT /plans/{name}', { path: { name }, body: this.plan.text }).then(() => {
        this.plan.name = name;
        done(`Saved plan ${name}.`);
      });
    attempt('Save', async () => {
      const known = name === this.plan.name ? [] : await api.call('GET /plans');
      if (known.some((it) => it.name === name)) {
        confirm(
          `Replace plan ${name}?`,
          'Replace the plan',
          store,
          element('p', {}, 'The server has another plan of this name.'),
        );
      } else {
        await store();
      }
    });
  }

  private run(): void {
    attempt('Run', async () => {
      const { api, signal } = this.context;
      const summary = await api.call('POST /plans/check', { body: this.plan.text, signal });
      if (summary.errors.length || summary.kind === null) {
        this.summary = summary;
        this.errors = summary.errors;
        this.showErrors();
        throw new Error(
          summary.errors.length
            ? 'the plan has errors; they are above the forms'
            : 'the text is no plan',
        );
      }
      const source: RunRequest['plan'] = this.plan.document
        ? { document: this.plan.document }
        : { text: this.plan.text };
      runDialog(this.context, source, this.plan.name, summary.ports);
    });
  }
}
