// The page: sign-in, header, and the view that the address names.

import { ApiError, messageOf } from './api.ts';
import { capturesView } from './captures.ts';
import type { Context, View } from './context.ts';
import { append, button, element, replace } from './element.ts';
import { failed, notices, clearNotices } from './notice.ts';
import { planView } from './plan/view.ts';
import { portsView } from './ports.ts';
import { runView } from './run/view.ts';
import { runsView } from './runs.ts';
import { Identity, openApi, storeCredentials } from './session.ts';
import { sessionDialog, signInView } from './signin.ts';
import { Store } from './store.ts';
import { testsView } from './tests/list.ts';
import { testView } from './tests/view.ts';
import { themeButton } from './theme.ts';
import { usersView } from './users.ts';

const RETRY_MS = 2_000;

const api = openApi();
const banner = element('div', { class: 'banner', role: 'alert', hidden: true });
const navigation = element('nav', { 'aria-label': 'Views' });
const account = element('div', { class: 'account' });
const main = element('main', { id: 'main', tabindex: '-1' });
const theme = themeButton();

let store: Store | null = null;
let me: Identity | null = null;
let view = new AbortController();

append(document.body, [
  element('a', { class: 'skip', href: '#main', on: { click: skip } }, 'Skip to the content'),
  element(
    'header',
    {},
    element(
      'a',
      { class: 'brand', href: '#/ports' },
      element('img', { src: '/assets/icon.svg', alt: '', width: 24, height: 24 }),
      'Wirestorm',
    ),
    navigation,
    element('div', { class: 'tools' }, account, theme),
  ),
  banner,
  notices,
  main,
]);

addEventListener('hashchange', () => show(true));
addEventListener('unhandledrejection', (event) => failed('Defect in the page', event.reason));
api.onUnauthorized = () => {
  if (me) signOut('The server does not accept the token any longer.');
};
start();

/** Asks the server who the user is; shows the sign-in form if it needs a token. */
function start(isMove = false): void {
  api
    .call('GET /session')
    .then((session) => {
      banner.hidden = true;
      me = new Identity(session);
      store?.close();
      store = new Store(api);
      store.start();
      showHeader();
      show(isMove);
      store.subscribe(showConnection, new AbortController().signal);
    })
    .catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 401) {
        banner.hidden = true;
        signOut(api.credentials.token ? error.message : null);
        return;
      }
      showBanner(`${messageOf(error)}. Trying again…`);
      window.setTimeout(() => start(isMove), RETRY_MS);
    });
}

function signOut(reason: string | null): void {
  store?.close();
  store = null;
  me = null;
  storeCredentials(api, { ...api.credentials, token: null });
  showHeader();
  banner.hidden = true;
  view.abort();
  view = new AbortController();
  replace(
    main,
    signInView(api, reason, () => start(true)),
  );
  document.title = 'Sign in – Wirestorm';
  main.querySelector<HTMLElement>('input')?.focus();
}

function showHeader(): void {
  if (!me) {
    replace(navigation);
    replace(account);
    return;
  }
  const identity = me;
  const links = [
    ['#/ports', 'Ports'],
    ['#/plan', 'Plan'],
    ['#/captures', 'Captures'],
    ['#/runs', 'Runs'],
    ['#/tests', 'Tests'],
  ];
  if (identity.role === 'administer') links.push(['#/users', 'Users']);
  replace(
    navigation,
    links.map(([href, label]) => element('a', { href }, label!)),
  );
  const name = identity.sessionName ? `${identity.user} / ${identity.sessionName}` : identity.user;
  replace(
    account,
    button(`${name} (${identity.role})`, () => sessionDialog(api, identity, () => start()), {
      class: 'quiet',
      id: 'account',
      title: `User and role on ${identity.host}, version ${identity.version}`,
    }),
    api.credentials.token !== null &&
      button(
        'Sign out',
        () => {
          clearNotices();
          signOut(null);
        },
        { class: 'quiet', id: 'sign-out' },
      ),
  );
}

function showConnection(): void {
  if (!store) return;
  if (store.connection === 'lost')
    showBanner(`The connection to the server is lost. ${store.error ?? 'Trying again…'}`);
  else if (store.error) showBanner(`The list of runs is not current: ${store.error}`);
  else banner.hidden = true;
}

function showBanner(text: string): void {
  if (banner.textContent !== text) banner.textContent = text;
  banner.hidden = false;
}

/** Shows the view of the address. `isMove`: the user went there, so the focus follows. */
function show(isMove: boolean): void {
  if (!me || !store) return;
  view.abort();
  view = new AbortController();
  const context: Context = { api, store, me, signal: view.signal };
  const { title, node } = viewOf(context);
  replace(main, node);
  document.title = `${title} – Wirestorm`;
  const route = location.hash.split('/')[1] ?? 'ports';
  for (const link of navigation.querySelectorAll('a')) {
    const isCurrent = link.hash === `#/${route || 'ports'}`;
    if (isCurrent) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (isMove) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

function viewOf(context: Context): View {
  const [, route, argument] = location.hash.split('/');
  switch (route) {
    case undefined:
    case '':
    case 'ports':
      return portsView(context);
    case 'plan':
      return planView(context, argument ? decoded(argument) : null);
    case 'captures':
      return capturesView(context);
    case 'runs':
      return argument ? runView(context, decoded(argument)) : runsView(context);
    case 'tests':
      return argument ? testView(context, decoded(argument)) : testsView(context);
    case 'users':
      return usersView(context);
    default:
      return {
        title: 'Not found',
        node: element(
          'section',
          {},
          element('h1', {}, 'Not found'),
          element('p', {}, 'There is no such view. ', element('a', { href: '#/ports' }, 'Ports')),
        ),
      };
  }
}

/** Returns the text of a part of the address; the part itself if it is malformed. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function skip(event: MouseEvent): void {
  // The address is the view's.
  event.preventDefault();
  main.focus();
}
