// Ports and runs of the server, kept current by its events.

import { type Api, ApiError, isAbort } from './api.ts';
import type { Port, RunSummary } from './documents.ts';
import { follow } from './stream.ts';

/** Runs that a request reads. */
const RUNS_PAGE = 100;
/** Runs that the page keeps; it does not read older ones. */
const RUNS_MAX = 10_000;
/** Time after which a hidden page leaves the server. */
const HIDDEN_MS = 60_000;

export type Connection = 'connecting' | 'open' | 'lost';

export class Store {
  ports: readonly Port[] = [];
  /** Runs by ID, the newest first. */
  runs: ReadonlyMap<string, RunSummary> = new Map();
  /** Number of runs in the history, also those that are not in `runs`. */
  total = 0;
  /** Grows with each change of the stored plans, and of the uploaded captures. */
  plansVersion = 0;
  capturesVersion = 0;
  connection: Connection = 'connecting';
  /** Why the list of runs is not current; null if it is. */
  error: string | null = null;
  /** Whether the first lists have arrived. */
  isLoaded = false;

  /** Cursor of the older runs; null if the oldest one is in `runs`. */
  private next: string | null = null;
  private isReading = false;
  /** What arrived since the list of runs was requested, which may be older. Null: deleted. */
  private newer: Map<string, RunSummary | null> | null = null;
  private readonly listeners = new Set<() => void>();
  private stop = new AbortController();
  private readonly end = new AbortController();

  constructor(private readonly api: Api) {}

  /** Follows the server until `close`. */
  start(): void {
    let timer = 0;
    // A browser opens few connections to a server: hidden pages must not hold them all.
    document.addEventListener(
      'visibilitychange',
      () => {
        clearTimeout(timer);
        if (document.hidden) timer = window.setTimeout(() => this.stop.abort(), HIDDEN_MS);
        else if (this.stop.signal.aborted) this.connect();
      },
      { signal: this.end.signal },
    );
    this.connect();
  }

  private connect(): void {
    this.stop = new AbortController();
    this.connection = 'connecting';
    void follow(this.api, 'GET /events', {}, this.stop.signal, {
      onOpen: () => {
        this.connection = 'open';
        void this.readRuns();
        this.plansVersion += 1;
        this.capturesVersion += 1;
        this.changed();
      },
      onLost: () => {
        this.connection = 'lost';
        this.changed();
      },
      onRefused: (error) => {
        this.connection = 'lost';
        this.error = error.text;
        this.changed();
      },
      onEvent: (event) => {
        switch (event.event) {
          case 'ports':
            this.ports = event.ports;
            break;
          case 'run':
            this.putRun(event.run);
            break;
          case 'run_deleted': {
            this.newer?.set(event.id, null);
            const runs = new Map(this.runs);
            if (runs.delete(event.id)) this.total = Math.max(0, this.total - 1);
            this.runs = runs;
            break;
          }
          case 'plan_stored':
          case 'plan_deleted':
            this.plansVersion += 1;
            break;
          case 'capture_uploaded':
          case 'capture_deleted':
            this.capturesVersion += 1;
            break;
          case 'missed':
            this.plansVersion += 1;
            this.capturesVersion += 1;
            void this.readRuns();
            void this.readPorts();
            break;
        }
        this.changed();
      },
    });
  }

  close(): void {
    this.end.abort();
    this.stop.abort();
    this.listeners.clear();
  }

  /** Calls a listener after each change, until `signal` aborts. */
  subscribe(listener: () => void, signal: AbortSignal): void {
    this.listeners.add(listener);
    signal.addEventListener('abort', () => this.listeners.delete(listener));
  }

  /** Notes what an answer tells about a run, before its event arrives. */
  putRun(run: RunSummary): void {
    this.newer?.set(run.id, run);
    const runs = new Map(this.runs);
    // A run that is older than the newest one may be of a page that was not read yet.
    const [newest] = runs.values();
    const isNew = !runs.has(run.id);
    if (isNew && (!newest || run.created_unix_ns > newest.created_unix_ns)) this.total += 1;
    runs.set(run.id, run);
    this.runs = ordered(runs.values());
    this.changed();
  }

  private async readRuns(): Promise<void> {
    const newer = new Map<string, RunSummary | null>();
    this.newer = newer;
    try {
      const list = await this.api.call('GET /runs', {
        query: { limit: RUNS_PAGE },
        signal: this.stop.signal,
      });
      const runs = new Map(list.runs.map((run) => [run.id, run]));
      for (const [id, run] of newer) {
        if (run) runs.set(id, run);
        else runs.delete(id);
      }
      this.runs = ordered(runs.values());
      this.total = list.total;
      this.next = list.next ?? null;
      this.error = null;
      this.isLoaded = true;
    } catch (error) {
      if (isAbort(error)) return;
      this.error = error instanceof ApiError ? error.text : String(error);
    }
    this.changed();
  }

  /** Whether the history has runs that are older than those in `runs`. */
  get hasMore(): boolean {
    return this.next !== null && this.runs.size < RUNS_MAX;
  }

  /** Reads the next, older runs. Returns whether there were any. */
  async readMore(): Promise<boolean> {
    const after = this.next;
    if (after === null || this.isReading) return false;
    this.isReading = true;
    try {
      const list = await this.api.call('GET /runs', {
        query: { limit: RUNS_PAGE, after },
        signal: this.stop.signal,
      });
      // Another list may have come meanwhile.
      if (this.next === after) {
        const known = [...this.runs.values()];
        const isKnown = new Set(this.runs.keys());
        this.runs = ordered([...known, ...list.runs.filter((run) => !isKnown.has(run.id))]);
        this.total = list.total;
        this.next = list.next ?? null;
      }
      return list.runs.length > 0;
    } finally {
      this.isReading = false;
      this.changed();
    }
  }

  private async readPorts(): Promise<void> {
    try {
      this.ports = await this.api.call('GET /ports', { signal: this.stop.signal });
    } catch (error) {
      if (isAbort(error)) return;
      this.error = error instanceof ApiError ? error.text : String(error);
    }
    this.changed();
  }

  private changed(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

function ordered(runs: Iterable<RunSummary>): ReadonlyMap<string, RunSummary> {
  const sorted = [...runs].sort((a, b) => b.created_unix_ns - a.created_unix_ns).slice(0, RUNS_MAX);
  return new Map(sorted.map((run) => [run.id, run]));
}
