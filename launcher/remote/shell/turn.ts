/** Resolves in the event loop's next turn: what has arrived by then comes first. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
