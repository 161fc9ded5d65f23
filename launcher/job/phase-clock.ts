/** How long each phase of the job took. */
import { monotonicMs } from '../../control/clock.ts';
import type { Phase } from '../model/failure.ts';

export class PhaseClock {
  readonly #spent: Record<Phase, number> = { allocate: 0, connect: 0, hello: 0, spawn: 0, run: 0, teardown: 0 };
  #phase: Phase = 'allocate';
  #since = monotonicMs();

  get phase(): Phase {
    return this.#phase;
  }

  enter(phase: Phase): void {
    const now = monotonicMs();
    this.#spent[this.#phase] += now - this.#since;
    this.#phase = phase;
    this.#since = now;
  }

  /** Milliseconds, to a hundredth. */
  read(): Record<Phase, number> {
    this.enter(this.#phase);
    const { allocate, connect, hello, spawn, run, teardown } = this.#spent;
    return {
      allocate: rounded(allocate),
      connect: rounded(connect),
      hello: rounded(hello),
      spawn: rounded(spawn),
      run: rounded(run),
      teardown: rounded(teardown),
    };
  }
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
