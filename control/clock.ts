/** Milliseconds on a clock that only moves forward. (The global `performance` would do, but loading it costs each start over 1 ms.) */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** Something that happens later unless it is cancelled. */
export interface Countdown {
  cancel(): void;
}

/** Whose time limits are counted by. */
export interface Clock {
  /** Milliseconds. */
  now(): number;
  after(milliseconds: number, run: () => void): Countdown;
}

/** Never stands still. */
export const steadyClock: Clock = {
  now: monotonicMs,
  after(milliseconds, run) {
    const timer = setTimeout(run, milliseconds);
    return { cancel: () => clearTimeout(timer) };
  },
};
