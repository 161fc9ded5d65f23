/** Launchers that wait for another attempt on the hosts where they have agents. One that has waited for long is ended, and so are those that are too many. */
import type { Clock, Countdown } from '../../../control/clock.ts';
import type { StandingLauncher } from './standing-launcher.ts';

const LONGEST_MS = 10_000;
const MAX_LAUNCHERS = 64;

export class IdleLaunchers {
  readonly #clock: Clock;
  /** With the end of its time. The one that waits longest is the first. */
  readonly #waiting = new Map<StandingLauncher, Countdown>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(launcher: StandingLauncher): void {
    const limit = this.#clock.after(LONGEST_MS, () => this.#end(launcher));
    this.#waiting.set(launcher, limit);
    const [oldest] = this.#waiting.keys();
    if (this.#waiting.size > MAX_LAUNCHERS && oldest !== undefined) this.#end(oldest);
  }

  /** Null: none waits there. */
  take(place: string): StandingLauncher | null {
    const found = [...this.#waiting.keys()].findLast((launcher) => launcher.place === place);
    if (found === undefined) return null;
    this.remove(found);
    return found;
  }

  /** It may not be there. */
  remove(launcher: StandingLauncher): void {
    this.#waiting.get(launcher)?.cancel();
    this.#waiting.delete(launcher);
  }

  /** None is taken any more. Returns those that wait. */
  close(): readonly StandingLauncher[] {
    const all = [...this.#waiting.keys()];
    for (const launcher of all) this.remove(launcher);
    return all;
  }

  #end(launcher: StandingLauncher): void {
    this.remove(launcher);
    launcher.end();
  }
}
