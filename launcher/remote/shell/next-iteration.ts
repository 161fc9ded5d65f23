/** Resolves in the event loop's next iteration: what has arrived by then comes first. */
export function nextIteration(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
