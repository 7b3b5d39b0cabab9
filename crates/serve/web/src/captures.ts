// Uploaded captures: list, upload, download, delete, replay.

import { isAbort, messageOf } from './api.ts';
import { type Context, disabledBy, type View } from './context.ts';
import type { Capture, ReplayRequest, RunRequest } from './documents.ts';
import { confirm, openDialog } from './dialog.ts';
import { readBody, save } from './download.ts';
import { button, checkbox, element, labelled, select } from './element.ts';
import { bytes, time } from './format.ts';
import { cell, numberCell, Rows, table } from './list.ts';
import { newest } from './newest.ts';
import { attempt, done, failed } from './notice.ts';

const EDITS_MAX = 32;
/** Edits of `wirestorm replay`: name, example, and whether it is a switch or a list. */
const EDITS: ReadonlyArray<readonly [string, string, ('switch' | 'list')?]> = [
  ['enet-dmac', '02:00:00:00:00:01'],
  ['enet-smac', '02:00:00:00:00:02'],
  ['enet-subsmac', 'OLD,NEW', 'list'],
  ['enet-mac-seed', '7'],
  ['enet-mac-seed-keep-bytes', '3'],
  ['enet-vlan', 'add, del, del-all, set or set-inner'],
  ['enet-vlan-tag', '0 to 4095'],
  ['enet-vlan-cfi', '0 or 1'],
  ['enet-vlan-pri', '0 to 7'],
  ['enet-vlan-proto', '802.1q or 802.1ad'],
  ['pnat', '10.0.0.0/8:192.168.0.0/16', 'list'],
  ['srcipmap', '10.0.0.0/8:192.168.0.0/16'],
  ['dstipmap', '10.0.0.0/8:192.168.0.0/16'],
  ['endpoints', '10.0.0.1:10.0.0.2'],
  ['seed', '7'],
  ['portmap', '80:8080', 'list'],
  ['tcp-sequence', '7'],
  ['ttl', '64, +1 or -1'],
  ['tos', '0 to 255'],
  ['tclass', '0 to 255'],
  ['flowlabel', '0 to 1048575'],
  ['fixlen', 'pad, trunc or del'],
  ['mtu', '1500'],
  ['mtu-trunc', '', 'switch'],
  ['efcs', '', 'switch'],
  ['fixcsum', '', 'switch'],
  ['fixhdrlen', '', 'switch'],
  ['skipbroadcast', '', 'switch'],
  ['skipl2broadcast', '', 'switch'],
  ['fuzz-seed', '7'],
  ['fuzz-factor', '8'],
];

export function capturesView(context: Context): View {
  const { api, me, signal, store } = context;
  const empty = element('p', { class: 'empty', hidden: true }, 'No captures yet.');
  const uploads = element('div', { class: 'uploads', role: 'status', 'aria-live': 'polite' });
  const rows = new Rows<Capture>(
    (capture) => capture.name,
    (capture) => cells(capture),
  );
  const list = table(
    'Captures',
    ['Name', 'Length', 'Upload', 'Actions'].map((label) => ({
      label,
      isNumber: label === 'Length',
    })),
    rows.body,
  );
  const read = newest(
    () => api.call('GET /captures', { signal }),
    (captures) => {
      rows.update(captures);
      empty.hidden = captures.length > 0;
      list.hidden = captures.length === 0;
    },
  );
  const readAgain = (): void => {
    read().catch((error: unknown) => {
      if (!isAbort(error)) failed('Captures', error);
    });
  };
  readAgain();
  let version = store.capturesVersion;
  store.subscribe(() => {
    if (version === store.capturesVersion) return;
    version = store.capturesVersion;
    readAgain();
  }, signal);

  function cells(capture: Capture): HTMLTableCellElement[] {
    const path = { name: capture.name };
    return [
      cell('Name', capture.name),
      numberCell('Length', bytes(capture.bytes)),
      cell('Upload', time(capture.uploaded_unix_ns)),
      element(
        'td',
        { class: 'actions' },
        button('Replay', () => replayDialog(context, capture.name), {
          class: 'small',
          'data-key': 'replay',
          'aria-label': `Replay ${capture.name}`,
          ...disabledBy(me.refusal('POST /runs')),
        }),
        button(
          'Download',
          () =>
            attempt(`Download ${capture.name}`, async () => {
              const response = await api.send('GET /captures/{name}', { path, signal });
              save(await readBody(response, () => undefined), capture.name);
            }),
          { class: 'small', 'data-key': 'download', 'aria-label': `Download ${capture.name}` },
        ),
        button(
          'Delete',
          () =>
            confirm(`Delete capture ${capture.name}?`, 'Delete the capture', async () => {
              await api.call('DELETE /captures/{name}', { path });
              done(`Deleted ${capture.name}.`);
              // Also while there are no events.
              readAgain();
            }),
          {
            class: 'small',
            'data-key': 'delete',
            'aria-label': `Delete ${capture.name}`,
            ...disabledBy(me.refusal('DELETE /captures/{name}')),
          },
        ),
      ),
    ];
  }

  const refusal = me.refusal('PUT /captures/{name}');
  const input = element('input', {
    type: 'file',
    multiple: true,
    id: 'upload-files',
    ...disabledBy(refusal),
    on: {
      change: () => {
        for (const file of input.files ?? []) send(file);
        input.value = '';
      },
    },
  });
  const drop = element(
    'div',
    {
      class: 'drop',
      on: {
        dragover: (event) => {
          if (!refusal) {
            event.preventDefault();
            drop.classList.add('over');
          }
        },
        dragleave: () => drop.classList.remove('over'),
        drop: (event) => {
          event.preventDefault();
          drop.classList.remove('over');
          if (!refusal) for (const file of event.dataTransfer?.files ?? []) send(file);
        },
      },
    },
    element('label', { for: 'upload-files' }, 'Upload captures, or other files that plans name'),
    input,
    element(
      'p',
      { class: 'hint' },
      refusal ?? 'Choose files, or drop them here. A file of the same name is replaced.',
    ),
  );

  function send(file: File): void {
    const stop = new AbortController();
    const bar = element('progress', { max: 1, value: 0, 'aria-label': `Upload of ${file.name}` });
    const state = element('span', {}, bytes(file.size));
    const cancel = button('Cancel', () => stop.abort(), { class: 'small' });
    const row = element(
      'div',
      { class: 'upload' },
      element('strong', {}, file.name),
      bar,
      state,
      cancel,
    );
    uploads.append(row);
    signal.addEventListener('abort', () => stop.abort());
    api
      .upload(
        file.name,
        file,
        (share) => {
          bar.value = share;
          state.textContent =
            share < 1 ? `${Math.floor(share * 100)} % of ${bytes(file.size)}` : 'Storing…';
        },
        stop.signal,
      )
      .then(() => {
        done(`Uploaded ${file.name}.`);
        readAgain();
      })
      .catch((error: unknown) => {
        if (!isAbort(error)) failed(`Upload of ${file.name}`, messageOf(error));
      })
      .finally(() => row.remove());
  }

  return {
    title: 'Captures',
    node: element('section', {}, element('h1', {}, 'Captures'), drop, uploads, list, empty),
  };
}

function replayDialog(context: Context, capture: string): void {
  const { api, store } = context;
  const names = store.ports.map((port) => [port.name, `${port.name} (${port.interface})`] as const);
  const port = select(names, { name: 'port' });
  const second = select([['', 'none: all on the first port'], ...names], {
    name: 'second_port',
    on: {
      change: () => {
        split.disabled = !second.value;
      },
    },
  });
  const split = element('input', { type: 'text', value: 'auto', name: 'split', disabled: true });
  const rx = select([['', 'none'], ...names], { name: 'rx' });
  const rate = element('input', { type: 'text', placeholder: 'as captured', name: 'rate' });
  const passes = element('input', {
    type: 'text',
    inputmode: 'numeric',
    value: '1',
    name: 'passes',
  });
  const limit = element('input', { type: 'text', placeholder: 'no limit', name: 'duration' });
  const title = element('input', { type: 'text', name: 'name' });
  const unique = checkbox('Each pass has its own IP addresses', { name: 'unique_ip' });
  const preload = checkbox('Read the capture before the first frame leaves');
  const ends = checkbox('Stop when the lease of a port ends');
  const edits = element('div', { class: 'edits' });
  const add = button(
    'Add an edit',
    () => {
      if (edits.childElementCount >= EDITS_MAX) return;
      const value = element('input', { type: 'text', 'aria-label': 'Value of the edit' });
      const kind = select(
        EDITS.map(([name]) => [name, name]),
        { 'aria-label': 'Edit', on: { change: () => show() } },
      );
      const show = (): void => {
        const [, example, form] = EDITS.find(([name]) => name === kind.value)!;
        value.placeholder = example;
        value.hidden = form === 'switch';
      };
      const row = element(
        'div',
        { class: 'edit' },
        kind,
        value,
        button(
          'Remove',
          () => {
            row.remove();
            add.focus();
          },
          { class: 'small' },
        ),
      );
      show();
      edits.append(row);
      kind.focus();
    },
    { class: 'small' },
  );

  function editsDocument(): Record<string, unknown> | null {
    const document: Record<string, unknown> = {};
    for (const row of edits.children) {
      const name = row.querySelector('select')!.value;
      const text = row.querySelector('input')!.value.trim();
      const form = EDITS.find((it) => it[0] === name)![2];
      if (form === 'switch') document[name] = true;
      else if (form === 'list')
        document[name] = [...((document[name] as string[] | undefined) ?? []), text];
      else document[name] = text;
    }
    return Object.keys(document).length ? document : null;
  }

  openDialog(
    {
      title: `Replay ${capture}`,
      action: 'Replay',
      isWide: true,
      onAction: async () => {
        const number = passes.value.trim();
        if (!/^\d+$/.test(number))
          throw new Error(
            `passes: found ${JSON.stringify(number)}, expected a whole number; 0 for no end`,
          );
        const replay: ReplayRequest = {
          captures: [capture],
          port: port.value,
          passes: Number(number),
          second_port: second.value || null,
          split: second.value ? split.value.trim() : null,
          rx: rx.value || null,
          rate: rate.value.trim() || null,
          unique_ip: unique.input.checked,
          preload: preload.input.checked,
          edits: editsDocument(),
        };
        const body: RunRequest = {
          plan: { replay },
          name: title.value.trim() || null,
          options: { duration: limit.value.trim() || null },
          when_lease_ends: ends.input.checked ? 'stop' : 'continue',
        };
        const run = await api.call('POST /runs', { body });
        store.putRun(run);
        location.hash = `#/runs/${encodeURIComponent(run.id)}`;
      },
    },
    names.length === 0 && element('p', { class: 'problem' }, 'The server lends no ports.'),
    element(
      'div',
      { class: 'fields' },
      labelled('Port', port, 'Sends the packets; of clients only, with a second port.'),
      labelled('Second port', second, 'Sends the packets of servers.'),
      labelled('Split', split, 'auto, first, port, port:LIST, cidr:LIST or mac:LIST'),
      labelled('Receiver', rx, 'Port where the frames should arrive.'),
      labelled('Rate', rate, '10kpps, 1G-l1, 1G-l2, x2 (twice the capture) or max'),
      labelled('Passes', passes, '0: no end'),
      labelled('Duration', limit, 'At most, such as 30s'),
      labelled('Name', title, 'In the history; may be empty.'),
    ),
    unique.node,
    preload.node,
    ends.node,
    element('fieldset', {}, element('legend', {}, 'Edits'), edits, add),
  );
}
