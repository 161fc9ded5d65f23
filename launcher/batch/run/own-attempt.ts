/** An attempt whose launcher is our child. Its files alone say how it ended, as those of a launcher that was adopted do. */
import { endOfFailure } from '../attempt/ending.ts';
import type { ProcessIdentity } from '../attempt/process-identity.ts';
import type { AttemptEnd, AttemptRecords } from '../attempt/records.ts';

export interface AttemptHandler {
  /** Its launcher has decided that it starts; before `ended`. */
  started(launcher: ProcessIdentity): void;
  /** Nothing of it runs any more. null: its launcher was lost. */
  ended(end: AttemptEnd | null): void;
}

export class OwnAttempt {
  readonly #records: AttemptRecords;
  readonly #handler: AttemptHandler;
  #hasBegun = false;

  constructor(records: AttemptRecords, handler: AttemptHandler) {
    this.#records = records;
    this.#handler = handler;
  }

  /** Passes on that it has, once. False: it has not decided to. */
  begun(): boolean {
    if (this.#hasBegun) return true;
    const decision = this.#records.decision();
    if (decision?.decided !== 'started') return false;
    this.#hasBegun = true;
    this.#handler.started(decision.launcher);
    return true;
  }

  /** Passes on how it ended if its launcher has said so. */
  isOver(): boolean {
    const end = this.#records.end();
    if (end === null) return false;
    this.begun();
    this.#handler.ended(end);
    return true;
  }

  /** Its launcher has let go of it. True: nobody knows how it ended. `output`: path of what it printed. */
  settle(why: string, output: string): boolean {
    if (this.isOver()) return false;
    if (this.begun()) return true;
    this.failedToBegin(why, output);
    return false;
  }

  lost(): void {
    this.#handler.ended(null);
  }

  /** Its launcher did not come so far as to decide anything. */
  failedToBegin(why: string, output: string): void {
    this.#records.voidUnlessStarted();
    const message = `its launcher did not start (${why}; what it printed is in ${output})`;
    this.#handler.ended(endOfFailure({ type: 'system', message, remedy: null }, Date.now()));
  }
}
