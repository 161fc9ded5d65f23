/** Waiting for a state of the outside world that sends no event (the process table, the kernel's freezer). */
import { setTimeout as delay } from 'node:timers/promises';

/** Asks every 2 ms (or `pauseMs`, where asking takes longer) until the answer is neither false nor null; throws with `what` after the limit. */
export async function until<T>(what: string, ask: () => T | false | null, limitMs = 10_000, pauseMs = 2): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const answer = ask();
    if (answer !== false && answer !== null) return answer;
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`);
    await delay(pauseMs);
  }
}
