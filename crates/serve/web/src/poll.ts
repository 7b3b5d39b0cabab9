// Reads that repeat, for what has no events.

/**
 * Calls a function now, and again at an interval until `signal` aborts or it returns false. Hidden
 * pages wait. Returns a function that calls it at once.
 */
export function poll(
  work: () => Promise<boolean | void>,
  intervalMs: number,
  signal: AbortSignal,
): () => void {
  let timer = 0;
  let isRunning = false;
  const call = (): void => {
    clearTimeout(timer);
    if (signal.aborted || isRunning) return;
    if (document.hidden) {
      timer = window.setTimeout(call, intervalMs);
      return;
    }
    isRunning = true;
    void work().then((goesOn) => {
      isRunning = false;
      if (goesOn !== false && !signal.aborted) timer = window.setTimeout(call, intervalMs);
    });
  };
  signal.addEventListener('abort', () => clearTimeout(timer));
  call();
  return call;
}
