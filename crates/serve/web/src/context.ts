// What each view gets: the API, the state of the server, and the user.

import type { Api } from './api.ts';
import type { Identity } from './session.ts';
import type { Store } from './store.ts';

export interface Context {
  api: Api;
  store: Store;
  me: Identity;
  /** Aborts when the view is left: its requests and listeners end with it. */
  signal: AbortSignal;
}

export interface View {
  title: string;
  node: HTMLElement;
}

/** Returns attributes that disable a control with a reason; none without a reason. */
export function disabledBy(reason: string | null): { disabled?: true; title?: string } {
  return reason === null ? {} : { disabled: true, title: reason };
}
