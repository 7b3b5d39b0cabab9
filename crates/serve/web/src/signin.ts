// Sign-in with a token, and the session of the user.

import { type Api, ApiError } from './api.ts';
import { element, labelled } from './element.ts';
import { openDialog } from './dialog.ts';
import { storeCredentials, type Identity } from './session.ts';
import { messageOf } from './api.ts';

/** The form for the token. `onDone` is called when the server accepted it. */
export function signInView(api: Api, reason: string | null, onDone: () => void): HTMLElement {
  const token = element('input', {
    type: 'password',
    name: 'token',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
    class: 'wide',
  });
  const problem = element('p', { class: 'problem', role: 'alert' }, reason);
  const submit = element('button', { type: 'submit', class: 'primary' }, 'Sign in');
  const check = async (): Promise<void> => {
    const before = api.credentials;
    problem.textContent = '';
    const text = token.value.trim();
    if (!/^[\x21-\x7e]+$/.test(text)) {
      problem.textContent = 'Enter a token: printable ASCII characters without spaces.';
      token.focus();
      return;
    }
    submit.disabled = true;
    try {
      api.credentials = { ...before, token: text };
      await api.call('GET /session');
      storeCredentials(api, api.credentials);
      onDone();
    } catch (error) {
      api.credentials = before;
      problem.textContent =
        error instanceof ApiError && error.status === 401
          ? 'No user has this token.'
          : messageOf(error);
      token.focus();
    } finally {
      submit.disabled = false;
    }
  };
  return element(
    'section',
    { class: 'panel narrow' },
    element('h1', {}, 'Sign in'),
    element(
      'form',
      {
        on: {
          submit: (event) => {
            event.preventDefault();
            void check();
          },
        },
        novalidate: true,
      },
      labelled('Token', token, 'This tab alone keeps the token, until it is closed.'),
      problem,
      submit,
    ),
    element(
      'p',
      { class: 'hint' },
      'An administrator creates tokens: ',
      element('code', {}, 'wirestorm serve user add NAME --role operate'),
    ),
  );
}

/** Shows the user, and changes its session. */
export function sessionDialog(api: Api, me: Identity, onDone: () => void): void {
  const hasToken = api.credentials.token !== null;
  const session = element('input', { type: 'text', maxlength: 64, value: me.sessionName });
  const user = element('input', { type: 'text', maxlength: 64, value: me.user });
  const { limits } = me;
  const limited = [
    limits.ports && `ports ${limits.ports.join(', ')}`,
    limits.ports_max && `at most ${limits.ports_max} ports`,
    limits.pps_max && `at most ${limits.pps_max.toLocaleString('en')} frames/s on a port`,
    limits.bps_max && `at most ${limits.bps_max.toLocaleString('en')} bit/s on a port`,
  ]
    .filter(Boolean)
    .join('; ');
  openDialog(
    {
      title: 'User and session',
      action: 'Apply',
      onAction: async () => {
        const before = api.credentials;
        const after = {
          ...before,
          session: session.value.trim(),
          user: hasToken ? before.user : user.value.trim() || null,
        };
        api.credentials = after;
        try {
          await api.call('GET /session');
        } catch (error) {
          api.credentials = before;
          throw error;
        }
        storeCredentials(api, after);
        onDone();
      },
    },
    element(
      'dl',
      { class: 'facts' },
      hasToken && [element('dt', {}, 'User'), element('dd', {}, me.user)],
      element('dt', {}, 'Role'),
      element('dd', {}, me.role),
      element('dt', {}, 'Limits'),
      element('dd', {}, limited || 'none'),
      element('dt', {}, 'Server'),
      element('dd', {}, `${me.host}, Wirestorm ${me.version}`),
    ),
    !hasToken && labelled('User', user, 'This server has no users: anybody may choose a name.'),
    labelled(
      'Session',
      session,
      'Leases belong to a session. Empty: the default session, as of the command line.',
    ),
  );
}
