/** Attempts on their way to a launcher. */
import type { OwnAttempt } from './own-attempt.ts';

/** So long an attempt waits at most for a launcher that is likely to be free soon. */
const PATIENCE_MS = 500;

export interface CalledAttempt {
  readonly attempt: OwnAttempt;
  readonly directory: string;
  /** Path of what it prints. */
  readonly output: string;
  /** A descriptor of that unless it is a file, because another process could not open it once more; null: it is a file. */
  readonly descriptor: number | null;
  /** Its hosts. */
  readonly place: string;
  /** Milliseconds, by the clock of the caller. */
  readonly calledAt: number;
}

/** The launchers on the hosts of an attempt. */
interface Served {
  readonly launchers: number;
  /** One of them runs an attempt that is likely to end soon. */
  readonly soon: boolean;
}

export class CalledAttempts {
  /** In the order in which they were called. */
  #waiting: CalledAttempt[] = [];

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  add(called: CalledAttempt): void {
    this.#waiting.push(called);
  }

  /** For a launcher that is free there. Null: nothing waits for one. */
  takeAt(place: string): CalledAttempt | null {
    return this.#take(this.#waiting.find((called) => called.place === place && called.descriptor === null));
  }

  /** The one for which a launcher is to be begun: where there are fewest. Null: nothing waits, or for others alone. */
  takeForNew(now: number, servedAt: (place: string) => Served): CalledAttempt | null {
    let best: CalledAttempt | undefined;
    let fewest = Infinity;
    const seen = new Map<string, Served>();
    for (const called of this.#waiting) {
      const { place, calledAt, descriptor } = called;
      const { launchers, soon } = seen.get(place) ?? servedAt(place);
      seen.set(place, { launchers, soon });
      const waits = soon && descriptor === null && now - calledAt < PATIENCE_MS;
      if (!waits && launchers < fewest) [best, fewest] = [called, launchers];
    }
    return this.#take(best);
  }

  /** Forgets and returns all. */
  clear(): readonly CalledAttempt[] {
    return this.#waiting.splice(0);
  }

  #take(called: CalledAttempt | undefined): CalledAttempt | null {
    if (called === undefined) return null;
    this.#waiting = this.#waiting.filter((one) => one !== called);
    return called;
  }
}
