/** Milliseconds on a clock that only moves forward. (The global `performance` would do, but loading it costs each start over 1 ms.) */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
