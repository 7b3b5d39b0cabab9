// Server-sent events by fetch: EventSource cannot send the header with the token.

import { type Api, ApiError, type Operation, type Request } from './api.ts';
import type { Operations } from './documents.ts';

/** Time without a byte after which a connection counts as lost; the server writes every 15 s. */
const SILENCE_MS = 40_000;
const WAIT_FIRST_MS = 500;
const WAIT_MAX_MS = 10_000;
/** Longest event; a plan of thousands of flows needs about 1 MB. */
const EVENT_CHARACTERS_MAX = 64 << 20;

export interface Follower<T> {
  onEvent: (event: T) => void;
  /** The connection is open. */
  onOpen?: () => void;
  /** The connection is lost; another one is tried in `waitMs`. */
  onLost?: (error: ApiError, waitMs: number) => void;
  /** The server refused the request; no other one follows. */
  onRefused?: (error: ApiError) => void;
  /** Returns whether an event is the last one. */
  isLast?: (event: T) => boolean;
}

/** Follows events until `signal` aborts, the last event, or a refusal. Reconnects with backoff. */
export async function follow<K extends Operation>(
  api: Api,
  operation: K,
  request: Request<K>,
  signal: AbortSignal,
  follower: Follower<Operations[K]['answer']>,
): Promise<void> {
  let wait = WAIT_FIRST_MS;
  while (!signal.aborted) {
    const connection = new AbortController();
    const stop = (): void => connection.abort();
    signal.addEventListener('abort', stop);
    let lost = new ApiError(0, { code: 'internal', message: 'the connection to the server ended' });
    try {
      const response = await api.send(operation, { ...request, signal: connection.signal });
      follower.onOpen?.();
      wait = WAIT_FIRST_MS;
      if (await read(response, connection, follower)) return;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      if (error.status >= 400 && error.status < 500) {
        follower.onRefused?.(error);
        return;
      }
      lost = error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
    if (signal.aborted) return;
    follower.onLost?.(lost, wait);
    await pause(wait * (0.75 + Math.random() / 2), signal);
    wait = Math.min(wait * 2, WAIT_MAX_MS);
  }
}

/** Reads events. Returns whether the last one arrived. */
async function read<T>(
  response: Response,
  connection: AbortController,
  follower: Follower<T>,
): Promise<boolean> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let silence = 0;
  const listen = (): void => {
    clearTimeout(silence);
    silence = window.setTimeout(() => connection.abort(), SILENCE_MS);
  };
  try {
    for (;;) {
      listen();
      // A lost connection is an error of the reader; errors of the follower are defects.
      const part = await reader.read().catch(() => null);
      if (part === null || part.done) return false;
      text += part.value.replaceAll('\r', '');
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      if (text.length > EVENT_CHARACTERS_MAX) {
        connection.abort();
        return false;
      }
      for (const block of parts) {
        const lines = block.split('\n').filter((line) => line.startsWith('data:'));
        if (!lines.length) continue;
        const event = JSON.parse(lines.map((line) => line.slice(5).trimStart()).join('\n')) as T;
        follower.onEvent(event);
        if (follower.isLast?.(event)) {
          connection.abort();
          return true;
        }
      }
    }
  } finally {
    clearTimeout(silence);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(end, ms);
    signal.addEventListener('abort', end);
    // A network that comes back, or a page that is shown again, needs no wait.
    addEventListener('online', end);
    function end(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      removeEventListener('online', end);
      resolve();
    }
  });
}
