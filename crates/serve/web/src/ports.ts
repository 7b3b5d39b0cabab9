// Ports: links, leases, who uses them; captures of their frames.

import { isAbort } from './api.ts';
import { type Context, disabledBy, type View } from './context.ts';
import type { Port } from './documents.ts';
import { confirm, openDialog } from './dialog.ts';
import { readBody, save } from './download.ts';
import { button, element, labelled } from './element.ts';
import { bytes, duration, owner, speed, time } from './format.ts';
import { cell, numberCell, Rows, table } from './list.ts';
import { attempt, done } from './notice.ts';

/** Names of the states of a link. */
export const LINKS: Record<Port['link'], string> = {
  up: 'up',
  no_carrier: 'no carrier',
  down: 'down',
  missing: 'missing',
};

export function portsView(context: Context): View {
  const { store, me } = context;
  const empty = element('p', { class: 'empty' }, 'The server lends no ports.');
  const rows = new Rows<Port>(
    (port) => port.name,
    (port) => cells(context, port),
    (port) =>
      JSON.stringify([
        port,
        port.runs.map((id) => [store.runs.get(id)?.user, store.runs.get(id)?.name]),
      ]),
  );
  const columns = ['Port', 'Interface', 'Link', 'Speed', 'MAC address', 'Lease', 'Runs', 'Actions'];
  const list = table(
    'Ports',
    columns.map((label) => ({ label, isNumber: label === 'Speed' })),
    rows.body,
  );
  const update = (): void => {
    rows.update(store.ports);
    empty.hidden = store.ports.length > 0 || store.connection === 'connecting';
    list.hidden = store.ports.length === 0;
  };
  store.subscribe(update, context.signal);
  update();
  const refusal = me.refusal('PUT /ports/{port}/lease');
  return {
    title: 'Ports',
    node: element(
      'section',
      {},
      element('h1', {}, 'Ports'),
      element(
        'p',
        { class: 'lead' },
        'A lease keeps a port for your session. ',
        'A run takes its ports for its own time, with or without a lease.',
      ),
      refusal && element('p', { class: 'reason' }, refusal),
      list,
      empty,
    ),
  };
}

function cells(context: Context, port: Port): HTMLTableCellElement[] {
  const { lease } = port;
  return [
    cell(
      'Port',
      element('strong', {}, port.name),
      port.default_route && element('span', { class: 'badge bad' }, 'default route'),
    ),
    cell(
      'Interface',
      port.interface,
      element(
        'span',
        { class: 'sub' },
        [port.kind, port.driver !== port.kind && port.driver].filter(Boolean).join(', '),
      ),
    ),
    cell(
      'Link',
      element('span', { class: `badge ${port.link === 'up' ? 'good' : 'bad'}` }, LINKS[port.link]),
      port.backend === null && element('span', { class: 'sub' }, port.backend_reason),
    ),
    numberCell('Speed', speed(port.speed_bps)),
    cell('MAC address', element('span', { class: 'mono' }, port.mac ?? '–')),
    cell(
      'Lease',
      lease
        ? [
            owner(lease.user, lease.session),
            element(
              'span',
              { class: 'sub' },
              `since ${time(lease.since_unix_ns)}`,
              lease.expires_in_s !== null &&
                lease.expires_in_s !== undefined &&
                `, ends in ${duration(lease.expires_in_s)}`,
            ),
          ]
        : 'free',
    ),
    cell(
      'Runs',
      port.capturing.map((user) =>
        element('span', { class: 'badge active' }, `captured by ${user}`),
      ),
      port.runs.length === 0
        ? !port.capturing.length && '–'
        : port.runs.map((id) => {
            const run = context.store.runs.get(id);
            return element(
              'div',
              {},
              element('a', { href: `#/runs/${encodeURIComponent(id)}` }, run?.name ?? id),
              run?.user && element('span', { class: 'sub' }, `of ${owner(run.user, run.session)}`),
            );
          }),
    ),
    element(
      'td',
      {
        class: 'actions',
        'data-state': JSON.stringify([
          port.link,
          lease?.user,
          lease?.session,
          lease?.since_unix_ns,
        ]),
      },
      actions(context, port),
    ),
  ];
}

function actions({ api, me }: Context, port: Port): HTMLElement[] {
  const refusal = me.refusal('PUT /ports/{port}/lease');
  const path = { port: port.name };
  const { lease } = port;
  const nodes: HTMLElement[] = [];
  const act = (
    label: string,
    key: string,
    work: () => void,
    reason: string | null = refusal,
  ): void => {
    nodes.push(
      button(label, work, {
        class: 'small',
        'data-key': key,
        'aria-label': `${label} port ${port.name}`,
        ...disabledBy(reason),
      }),
    );
  };
  if (!lease) {
    act('Acquire', 'lease', () =>
      attempt(`Acquire ${port.name}`, async () => {
        await api.call('PUT /ports/{port}/lease', { path, body: {} });
        done(`You lease port ${port.name}.`);
      }),
    );
  } else if (me.owns(lease.user, lease.session)) {
    act('Release', 'lease', () =>
      attempt(`Release ${port.name}`, async () => {
        await api.call('DELETE /ports/{port}/lease', { path });
        done(`Port ${port.name} is free.`);
      }),
    );
  } else {
    const isOther = lease.user !== me.user && me.role !== 'administer';
    act(
      'Take',
      'lease',
      () =>
        confirm(
          `Take port ${port.name} by force?`,
          'Take the port',
          async () => {
            await api.call('PUT /ports/{port}/lease', { path, body: { force: true } });
            done(`You lease port ${port.name}.`);
          },
          element(
            'p',
            {},
            `${owner(lease.user, lease.session)} has the lease since ${time(lease.since_unix_ns)}.`,
          ),
          element('p', {}, 'All runs of the owner on this port stop.'),
        ),
      refusal ??
        (isOther ? `The port belongs to ${lease.user}; this needs the role administer.` : null),
    );
  }
  const captureRefusal =
    me.refusal('GET /ports/{port}/capture') ??
    (port.link === 'missing' ? 'The interface does not exist.' : null);
  act('Capture', 'capture', () => captureDialog(api, port), captureRefusal);
  return nodes;
}

function captureDialog(api: Context['api'], port: Port): void {
  const length = element('input', { type: 'text', value: '10s', name: 'duration' });
  const packets = element('input', {
    type: 'text',
    inputmode: 'numeric',
    value: '1000',
    name: 'packets',
  });
  const filter = element('input', {
    type: 'text',
    placeholder: 'icmp or arp',
    name: 'filter',
    class: 'wide',
    spellcheck: 'false',
  });
  const progress = element('p', { class: 'hint', 'aria-live': 'polite' });
  const stopping = new AbortController();
  const stop = button('Stop and save', () => stopping.abort(), { hidden: true });
  const dialog = openDialog(
    {
      title: `Capture on port ${port.name}`,
      action: 'Capture',
      onAction: async (signal) => {
        const number = packets.value.trim();
        if (number && !/^[1-9]\d*$/.test(number))
          throw new Error(
            `packets: found ${JSON.stringify(number)}, expected a whole number from 1`,
          );
        const query = {
          ...(filter.value.trim() ? { filter: filter.value.trim() } : {}),
          ...(length.value.trim() ? { duration: length.value.trim() } : {}),
          ...(number ? { packets: Number(number) } : {}),
        };
        const response = await api.send('GET /ports/{port}/capture', {
          path: { port: port.name },
          query,
          signal,
        });
        stop.hidden = false;
        stop.focus();
        progress.textContent = 'Capturing…';
        try {
          const data = await readBody(
            response,
            (length) => {
              progress.textContent = `Capturing: ${bytes(length)}`;
            },
            stopping.signal,
          );
          if (signal.aborted) return;
          save(data, `${port.name.replaceAll(/[^\w.-]/g, '-')}.pcapng`);
          done(`Saved ${bytes(data.size)} of port ${port.name}.`);
        } catch (error) {
          if (!isAbort(error)) throw error;
        } finally {
          stop.hidden = true;
        }
      },
    },
    element('p', {}, `Frames that arrive at ${port.interface}, as a pcapng file.`),
    element(
      'div',
      { class: 'fields' },
      labelled('Duration', length, 'With unit, such as 500ms; empty: no limit.'),
      labelled('Packets', packets, 'Empty: no limit.'),
    ),
    labelled('Filter', filter, 'In tcpdump syntax; empty: all frames.'),
    progress,
    stop,
  );
  dialog.addEventListener('close', () => stopping.abort());
}
