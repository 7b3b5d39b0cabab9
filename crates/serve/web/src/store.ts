// Ports and runs of the server, kept current by its events.

import { type Api, isAbort, messageOf } from './api.ts';
import type { Port, RunList, RunSummary } from './documents.ts';
import { isActive } from './runstate.ts';
import { follow } from './stream.ts';

/** Runs that the page reads at a time, and that a request may read. */
const RUNS_PAGE = 100;
const REQUEST_MAX = 1_000;
/** Active runs, whatever their age. */
const ACTIVE = { active: true, limit: REQUEST_MAX };
/** Runs that the page keeps beside active ones; it does not read older ones. */
export const RUNS_MAX = 10_000;
/** Time after which a hidden page leaves the server. */
const HIDDEN_MS = 60_000;

export type Connection = 'connecting' | 'open' | 'lost';

/** Runs that events and answers told of; null: deleted. */
type Changes = Map<string, RunSummary | null>;

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
  /** What arrives while the page reads lists of runs, which may be older. */
  private readonly newer = new Set<Changes>();
  /** Reads of the list of runs so far. */
  private reads = 0;
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
        this.refresh(this.readRuns());
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
          case 'run_deleted':
            this.dropRun(event.id);
            break;
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
            this.refresh(this.readRuns());
            this.refresh(this.readPorts());
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
    this.note(run.id, run);
    const runs = new Map(this.runs);
    // A run that is older than the newest one may be of a page that was not read yet.
    const [first] = runs.values();
    const isNew = !runs.has(run.id);
    if (isNew && (!first || run.created_unix_ns > first.created_unix_ns)) this.total += 1;
    runs.set(run.id, run);
    this.runs = ordered(runs);
    this.changed();
  }

  /** Notes that a run is deleted. */
  dropRun(id: string): void {
    this.note(id, null);
    const runs = new Map(this.runs);
    if (runs.delete(id)) this.total = Math.max(0, this.total - 1);
    this.runs = runs;
    this.changed();
  }

  private note(id: string, run: RunSummary | null): void {
    for (const changes of this.newer) changes.set(id, run);
  }

  /** Calls a function with what changes until its work is done. */
  private async whileNoting(work: (changes: Changes) => Promise<void>): Promise<void> {
    const changes: Changes = new Map();
    this.newer.add(changes);
    try {
      await work(changes);
    } finally {
      this.newer.delete(changes);
    }
  }

  /**
   * Reads as many runs as the page has, so that those that were deleted meanwhile vanish, and the
   * active ones of any age.
   */
  private readRuns(): Promise<void> {
    this.reads += 1;
    const read = this.reads;
    const { signal } = this.stop;
    return this.whileNoting(async (changes) => {
      const [active, list] = await Promise.all([
        this.api.call('GET /runs', { query: ACTIVE, signal }),
        this.readNewest(Math.max(RUNS_PAGE, this.runs.size), signal),
      ]);
      // A later read has begun meanwhile.
      if (read !== this.reads) return;
      const runs = new Map([...active.runs, ...list.runs].map((run) => [run.id, run]));
      for (const [id, run] of changes) {
        if (run) runs.set(id, run);
        else runs.delete(id);
      }
      this.runs = ordered(runs);
      this.total = list.total;
      this.next = list.next ?? null;
      this.error = null;
      this.isLoaded = true;
      this.changed();
    });
  }

  /** Reads the newest runs. */
  private async readNewest(wanted: number, signal: AbortSignal): Promise<RunList> {
    const runs: RunSummary[] = [];
    let after = '';
    for (;;) {
      const limit = Math.min(wanted - runs.length, REQUEST_MAX);
      const list = await this.api.call('GET /runs', { query: { limit, after }, signal });
      runs.push(...list.runs);
      if (!list.next || runs.length >= wanted) return { ...list, runs };
      after = list.next;
    }
  }

  /** Whether the history has runs that are older than those in `runs`. */
  get hasMore(): boolean {
    return this.next !== null && this.runs.size < RUNS_MAX;
  }

  /** Reads the next, older runs. */
  async readMore(): Promise<void> {
    const after = this.next;
    if (after === null || this.isReading) return;
    this.isReading = true;
    try {
      await this.whileNoting(async (changes) => {
        const list = await this.api.call('GET /runs', {
          query: { limit: RUNS_PAGE, after },
          signal: this.stop.signal,
        });
        // Another list may have come meanwhile.
        if (this.next !== after) return;
        const older = list.runs.filter((run) => changes.get(run.id) !== null);
        this.runs = ordered(new Map([...older.map((run) => [run.id, run] as const), ...this.runs]));
        this.total = list.total;
        this.next = list.next ?? null;
      });
    } finally {
      this.isReading = false;
      this.changed();
    }
  }

  private async readPorts(): Promise<void> {
    this.ports = await this.api.call('GET /ports', { signal: this.stop.signal });
    this.changed();
  }

  /** Shows the error of a list that cannot be read. */
  private refresh(reading: Promise<void>): void {
    reading.catch((error: unknown) => {
      if (isAbort(error)) return;
      this.error = messageOf(error);
      this.changed();
    });
  }

  private changed(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

/** Returns runs by age, the newest first, without those that are too many. */
function ordered(runs: ReadonlyMap<string, RunSummary>): ReadonlyMap<string, RunSummary> {
  const sorted = [...runs].sort(([, a], [, b]) => b.created_unix_ns - a.created_unix_ns);
  return new Map(sorted.filter(([, run], at) => at < RUNS_MAX || isActive(run)));
}
