// Answers in the order of their requests.

/** Returns a function that reads a value and shows it, unless a later call has begun meanwhile. */
export function newest<T>(read: () => Promise<T>, show: (value: T) => void): () => Promise<void> {
  let calls = 0;
  return async () => {
    calls += 1;
    const call = calls;
    const value = await read();
    if (call === calls) show(value);
  };
}
