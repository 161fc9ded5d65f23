/** The job's time: while ^Z has it stopped, none passes. What is to happen later then happens as much later. */
import { type Clock, type Countdown, steadyClock } from '../../control/clock.ts';

class JobCountdown implements Countdown {
  readonly #clock: JobClock;
  readonly #dueAt: number;
  readonly #run: () => void;
  #timer: Countdown | null = null;

  constructor(clock: JobClock, dueAt: number, run: () => void) {
    this.#clock = clock;
    this.#dueAt = dueAt;
    this.#run = run;
  }

  start(): void {
    this.#timer = steadyClock.after(Math.max(0, this.#dueAt - this.#clock.now()), () => {
      this.#clock.forget(this);
      this.#run();
    });
  }

  pause(): void {
    this.#timer?.cancel();
  }

  cancel(): void {
    this.pause();
    this.#clock.forget(this);
  }
}

export class JobClock implements Clock {
  readonly #countdowns = new Set<JobCountdown>();
  /** Of the steady clock: when this one showed 0. */
  #zero = steadyClock.now();
  #stoppedAt: number | null = null;

  now(): number {
    return (this.#stoppedAt ?? steadyClock.now()) - this.#zero;
  }

  after(milliseconds: number, run: () => void): Countdown {
    const countdown = new JobCountdown(this, this.now() + milliseconds, run);
    this.#countdowns.add(countdown);
    if (this.#stoppedAt === null) countdown.start();
    return countdown;
  }

  forget(countdown: JobCountdown): void {
    this.#countdowns.delete(countdown);
  }

  stop(): void {
    if (this.#stoppedAt !== null) return;
    this.#stoppedAt = steadyClock.now();
    for (const countdown of this.#countdowns) countdown.pause();
  }

  resume(): void {
    if (this.#stoppedAt === null) return;
    this.#zero += steadyClock.now() - this.#stoppedAt;
    this.#stoppedAt = null;
    for (const countdown of this.#countdowns) countdown.start();
  }
}
