// The user of the page: the token, the session, and what the role allows.

import { Api, type Credentials, type Operation } from './api.ts';
import { ROLES, type Role, type RunSummary, type Session } from './documents.ts';

const KEY = 'wirestorm-credentials';
const RANKS: readonly Role[] = ['observe', 'operate', 'administer'];

/** The user, after the server confirmed it. */
export class Identity {
  constructor(private readonly session: Session) {}

  get user(): string {
    return this.session.user;
  }
  get sessionName(): string {
    return this.session.session;
  }
  get role(): Role {
    return this.session.role;
  }
  get host(): string {
    return this.session.host;
  }
  get version(): string {
    return this.session.version;
  }
  get limits(): Session['limits'] {
    return this.session.limits;
  }

  /** Returns the reason why the role does not allow an operation; null if it does. */
  refusal(operation: Operation): string | null {
    const needed = ROLES[operation];
    if (RANKS.indexOf(this.role) >= RANKS.indexOf(needed)) return null;
    return `Your role is ${this.role}; this needs ${needed}.`;
  }

  /** Returns the reason why the user may not change a run; null if it may. */
  refusalOfRun(operation: Operation, run: RunSummary): string | null {
    const refusal = this.refusal(operation);
    if (refusal) return refusal;
    if (this.role === 'administer' || run.user === this.user) return null;
    return `The run belongs to ${run.user ?? 'the command line'}; this needs the role administer.`;
  }

  /** Returns whether the user and its session own something. */
  owns(user: string, session: string): boolean {
    return this.user === user && this.sessionName === session;
  }
}

/** Creates the API with the credentials of this tab. They never leave the tab's session storage. */
export function openApi(): Api {
  return new Api(stored());
}

export function storeCredentials(api: Api, credentials: Credentials): void {
  api.credentials = credentials;
  try {
    sessionStorage.setItem(KEY, JSON.stringify(credentials));
  } catch {
    // The credentials last until the page is closed.
  }
}

function stored(): Credentials {
  const none: Credentials = { token: null, user: null, session: '' };
  try {
    const text = sessionStorage.getItem(KEY);
    return text === null ? none : { ...none, ...(JSON.parse(text) as Partial<Credentials>) };
  } catch {
    return none;
  }
}
