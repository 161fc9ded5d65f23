/** The watchdog (native/watchdog) that ends this process if it does not come up, and speaks on its stdout until it does so itself. */
import { closeSync, readSync, writeSync } from 'node:fs';
import { monotonicMs } from '../../control/clock.ts';

/** Variable in which the watchdog passes its two descriptors: "token disarm". */
const VARIABLE = 'NCCLRUN_WATCHDOG';
/** A watchdog that is stopped while it writes does not keep us from speaking for ever. */
const TOKEN_MS = 1000;

export class Watchdog {
  #token: number | null;
  #disarm: number | null;

  private constructor(token: number | null, disarm: number | null) {
    this.#token = token;
    this.#disarm = disarm;
  }

  /** This process's; one that does nothing where there is none. Ranks do not see the variable. */
  static ofThisProcess(): Watchdog {
    const [, token, disarm] = /^(\d+) (\d+)$/.exec(process.env[VARIABLE] ?? '') ?? [];
    delete process.env[VARIABLE];
    return new Watchdog(token === undefined ? null : Number(token), disarm === undefined ? null : Number(disarm));
  }

  /** From now on nobody but us writes to stdout. A second call does nothing. */
  speak(): void {
    const token = this.#token;
    this.#token = null;
    if (token === null) return;
    const deadline = monotonicMs() + TOKEN_MS;
    while (!isTaken(token) && monotonicMs() < deadline);
    closeSync(token);
  }

  /** Something else watches over us now. A second call does nothing. */
  disarm(): void {
    const descriptor = this.#disarm;
    this.#disarm = null;
    if (descriptor === null) return;
    try {
      writeSync(descriptor, '.'); // whoever has inherited the descriptor does not keep the watchdog
    } catch {
      // It has ended.
    }
    closeSync(descriptor);
  }
}

/** The watchdog writes to stdout for a few microseconds at a time; it has the token then. */
function isTaken(token: number): boolean {
  try {
    readSync(token, new Uint8Array(1));
    return true;
  } catch {
    return false;
  }
}
