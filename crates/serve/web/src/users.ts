// Users of the server.

import { isAbort, messageOf } from './api.ts';
import { type Context, type View } from './context.ts';
import type { Role, User } from './documents.ts';
import { confirm, openDialog } from './dialog.ts';
import { button, element, labelled, select } from './element.ts';
import { cell, Rows, table } from './list.ts';
import { newest } from './newest.ts';
import { done, failed } from './notice.ts';

export function usersView(context: Context): View {
  const { api, me, signal } = context;
  const refusal = me.refusal('GET /users');
  if (refusal) {
    return {
      title: 'Users',
      node: element(
        'section',
        {},
        element('h1', {}, 'Users'),
        element('p', { class: 'reason' }, refusal),
      ),
    };
  }
  const empty = element(
    'p',
    { class: 'empty', hidden: true },
    'The server has no users. On a loopback address it needs none.',
  );
  const rows = new Rows<User>(
    (user) => user.name,
    (user) => [
      cell(
        'Name',
        element('strong', {}, user.name),
        user.name === me.user &&
          api.credentials.token !== null &&
          element('span', { class: 'badge active' }, 'you'),
      ),
      cell('Role', user.role),
      cell(
        'Signs in with',
        [user.has_token && 'token', user.certificate && `certificate ${user.certificate}`]
          .filter(Boolean)
          .join(', ') || '–',
      ),
      cell('Limits', limitsText(user)),
      element(
        'td',
        { class: 'actions', 'data-state': JSON.stringify(user) },
        button('New token', () => userDialog(user), {
          class: 'small',
          'aria-label': `New token of ${user.name}`,
        }),
        button(
          'Remove',
          () =>
            confirm(
              `Remove user ${user.name}?`,
              'Remove the user',
              async () => {
                await api.call('DELETE /users/{name}', { path: { name: user.name } });
                done(`Removed user ${user.name}.`);
                await read();
              },
              element('p', {}, 'The token ends at once. Leases and runs of the user continue.'),
            ),
          { class: 'small', 'aria-label': `Remove ${user.name}` },
        ),
      ),
    ],
  );
  const list = table(
    'Users',
    ['Name', 'Role', 'Signs in with', 'Limits', 'Actions'].map((label) => ({ label })),
    rows.body,
  );
  const read = newest(
    () => api.call('GET /users', { signal }),
    (users) => {
      rows.update(users);
      empty.hidden = users.length > 0;
      list.hidden = users.length === 0;
    },
  );
  read().catch((error: unknown) => {
    if (!isAbort(error)) failed('Users', messageOf(error));
  });

  function userDialog(user: User | null): void {
    const name = element('input', {
      type: 'text',
      maxlength: 64,
      value: user?.name ?? '',
      disabled: user !== null,
      name: 'name',
    });
    const role = select(
      [
        ['observe', 'observe: read everything, change nothing'],
        ['operate', 'operate: lease ports, start and command own runs'],
        ['administer', 'administer: all of it, and users'],
      ],
      { value: user?.role ?? 'operate', name: 'role' },
    );
    const ports = element('input', { type: 'text', value: user?.limits?.ports?.join(', ') ?? '' });
    const portsMax = element('input', {
      type: 'text',
      inputmode: 'numeric',
      value: user?.limits?.ports_max ?? '',
    });
    const pps = element('input', {
      type: 'text',
      inputmode: 'numeric',
      value: user?.limits?.pps_max ?? '',
    });
    const bps = element('input', {
      type: 'text',
      inputmode: 'numeric',
      value: user?.limits?.bps_max ?? '',
    });
    const certificate = element('input', { type: 'text', value: user?.certificate ?? '' });
    openDialog(
      {
        title: user ? `New token of ${user.name}` : 'Add a user',
        action: user ? 'Replace the token' : 'Add the user',
        isDangerous: user !== null,
        onAction: async () => {
          const names = ports.value
            .split(',')
            .map((it) => it.trim())
            .filter(Boolean);
          const answer = await api.call('PUT /users/{name}', {
            path: { name: name.value.trim() },
            body: {
              role: role.value as Role,
              limits: {
                ports: names.length ? names : null,
                ports_max: whole('ports', portsMax.value),
                pps_max: whole('frames/s', pps.value),
                bps_max: whole('bit/s', bps.value),
              },
              certificate: certificate.value.trim() || null,
            },
          });
          await read();
          // After this dialog has closed.
          window.setTimeout(() => tokenDialog(answer.user.name, answer.token), 0);
        },
      },
      user && element('p', {}, 'The old token ends at once.'),
      labelled('Name', name),
      labelled('Role', role),
      element(
        'details',
        {},
        element('summary', {}, 'Limits and certificate'),
        labelled('Ports', ports, 'Names, with commas; empty: all.'),
        element(
          'div',
          { class: 'fields' },
          labelled('Ports at a time', portsMax),
          labelled('Frames/s of a port', pps),
          labelled('Bit/s of a port', bps),
        ),
        labelled('Certificate', certificate, 'Common name of the client certificate; empty: none.'),
      ),
    );
  }
  return {
    title: 'Users',
    node: element(
      'section',
      {},
      element('h1', {}, 'Users'),
      element(
        'p',
        {},
        button('Add a user', () => userDialog(null), { class: 'primary' }),
      ),
      list,
      empty,
    ),
  };
}

function tokenDialog(name: string, token: string): void {
  const output = element(
    'output',
    { class: 'mono token', tabindex: '0', 'aria-label': 'Token' },
    token,
  );
  openDialog(
    { title: `Token of ${name}` },
    element('p', {}, 'The server stores only a digest of the token: it is shown this once.'),
    output,
    button('Copy', () => {
      navigator.clipboard
        .writeText(token)
        .then(() => done('Copied the token.'))
        .catch(() =>
          failed('Copy', new Error('the browser does not allow it: select the token and copy it')),
        );
    }),
  );
}

function whole(what: string, text: string): number | null {
  const value = text.trim().replaceAll(',', '');
  if (!value) return null;
  if (!/^\d+$/.test(value))
    throw new Error(`${what}: found ${JSON.stringify(text)}, expected a whole number`);
  return Number(value);
}

function limitsText({ limits }: User): string {
  if (!limits) return 'none';
  return (
    [
      limits.ports && limits.ports.join(', '),
      limits.ports_max && `${limits.ports_max} ports at a time`,
      limits.pps_max && `${limits.pps_max.toLocaleString('en')} frames/s`,
      limits.bps_max && `${limits.bps_max.toLocaleString('en')} bit/s`,
    ]
      .filter(Boolean)
      .join('; ') || 'none'
  );
}
