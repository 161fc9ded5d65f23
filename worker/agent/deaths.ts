/**
 * Joins the two signs of a process's end: its pidfd (the engine is gone, nothing more will come from it) and the guardian's report (how it
 * ended). An engine may be a descendant of its rank, of whose end the guardian says nothing: then the first sign alone must do.
 */
import type { Exited } from '../../control/messages/payload.ts';
import { describeExit } from './describe-exit.ts';
import type { Engine } from './engine.ts';

/** The guardian's report comes within this time of the pidfd, or not at all. */
const REPORT_MS = 20;

export interface Death {
  /** Follows the rank's name: "was killed by SIGKILL". */
  readonly phrase: string;
  /** With status 0; null: not known. */
  readonly cleanly: boolean | null;
}

export class Deaths {
  readonly #gone: (engine: Engine, death: Death) => void;
  readonly #ended = new Map<number, Exited>();
  /** Gone, the report is awaited. */
  readonly #awaited = new Map<Engine, NodeJS.Timeout>();

  constructor(gone: (engine: Engine, death: Death) => void) {
    this.#gone = gone;
  }

  /** Ranks of this host that have ended. */
  get ended(): number {
    return this.#ended.size;
  }

  rankEnded(rank: number, exited: Exited): void {
    this.#ended.set(rank, exited);
    for (const engine of Array.from(this.#awaited.keys())) if (engine.jobRank === rank) this.#declare(engine);
  }

  engineDied(engine: Engine): void {
    if (this.#ended.has(engine.jobRank)) this.#declare(engine);
    else
      this.#awaited.set(
        engine,
        setTimeout(() => this.#declare(engine), REPORT_MS),
      );
  }

  close(): void {
    for (const timer of this.#awaited.values()) clearTimeout(timer);
    this.#awaited.clear();
  }

  #declare(engine: Engine): void {
    clearTimeout(this.#awaited.get(engine));
    this.#awaited.delete(engine);
    const exited = this.#ended.get(engine.jobRank);
    if (exited === undefined) {
      this.#gone(engine, { phrase: 'ended without leaving the communicator', cleanly: null });
      return;
    }
    const cause = describeExit(exited);
    const phrase = exited.signalNumber === null ? `${cause} without leaving the communicator` : cause;
    this.#gone(engine, { phrase, cleanly: exited.exitCode === 0 });
  }
}
