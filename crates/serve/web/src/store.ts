// Ports and runs of the server, kept current by its events.

import { type Api, ApiError, isAbort } from './api.ts';
import type { Port, RunSummary } from './documents.ts';
import { follow } from './stream.ts';

/** The server lists at most this many runs. */
const RUNS_MAX = 1_000;
/** Time after which a hidden page leaves the server. */
const HIDDEN_MS = 60_000;

export type Connection = 'connecting' | 'open' | 'lost';

export class Store {
  ports: readonly Port[] = [];
  /** Runs by ID, the newest first. */
  runs: ReadonlyMap<string, RunSummary> = new Map();
  /** Number of runs in the history, also those that are not in `runs`. */
  total = 0;
  connection: Connection = 'connecting';
  /** Why the list of runs is not current; null if it is. */
  error: string | null = null;
  /** Whether the first lists have arrived. */
  isLoaded = false;

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
          case 'missed':
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
    if (!runs.has(run.id)) this.total += 1;
    runs.set(run.id, run);
    this.runs = ordered(runs.values());
    this.changed();
  }

  private async readRuns(): Promise<void> {
    const newer = new Map<string, RunSummary | null>();
    this.newer = newer;
    try {
      const list = await this.api.call('GET /runs', {
        query: { limit: RUNS_MAX },
        signal: this.stop.signal,
      });
      const runs = new Map(list.runs.map((run) => [run.id, run]));
      for (const [id, run] of newer) {
        if (run) runs.set(id, run);
        else runs.delete(id);
      }
      this.runs = ordered(runs.values());
      this.total = list.total;
      this.error = null;
      this.isLoaded = true;
    } catch (error) {
      if (isAbort(error)) return;
      this.error = error instanceof ApiError ? error.text : String(error);
    }
    this.changed();
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
