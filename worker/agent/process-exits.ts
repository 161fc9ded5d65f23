/**
 * Joins the two signs of a process's end: its pidfd (the engine is gone, nothing more will come from it) and the guardian's report (how it
 * ended). An engine may be a descendant of its rank, of whose end the guardian says nothing: then the first sign alone must do. Of a rank's
 * own process the guardian always tells, but after what it wrote has been taken: its peers are not kept waiting for that for long.
 */
import type { Exited } from '../../control/messages/payload.ts';
import { describeExit } from './describe-exit.ts';
import type { Engine } from './engine.ts';

/** After a descendant's end, that of its rank is reported within this time, or it lives on. */
const REPORT_MS = 20;
/** A rank's own end: a guardian that is merely busy has told by then. Who is said to have ended without a report is blamed for less than it did. */
const RANK_REPORT_MS = 500;
/** A process that ends closes its sockets first; after this time it only closed this one. */
const CLOSED_MS = 100;

export interface ProcessExit {
  /** Follows the rank's name: "was killed by SIGKILL". */
  readonly phrase: string;
  /** With status 0; null: not known. */
  readonly cleanly: boolean | null;
}

export class ProcessExits {
  readonly #gone: (engine: Engine, exit: ProcessExit) => void;
  readonly #deaf: (engine: Engine) => void;
  readonly #isRank: (engine: Engine) => boolean;
  readonly #ended = new Map<number, Exited>();
  /** Gone, the report is awaited. */
  readonly #awaited = new Map<Engine, NodeJS.Timeout>();
  /** Its connection is closed; whether it lives is not known yet. */
  readonly #closed = new Map<Engine, NodeJS.Timeout>();

  /** `deaf`: the process lives on without its connection. `isRank`: it is what the guardian has started. */
  constructor(
    gone: (engine: Engine, exit: ProcessExit) => void,
    deaf: (engine: Engine) => void,
    isRank: (engine: Engine) => boolean,
  ) {
    this.#gone = gone;
    this.#deaf = deaf;
    this.#isRank = isRank;
  }

  /** Ranks of this host that have ended. */
  get ended(): number {
    return this.#ended.size;
  }

  rankEnded(rank: number, exited: Exited): void {
    this.#ended.set(rank, exited);
    for (const engine of Array.from(this.#awaited.keys())) if (engine.jobRank === rank) this.#declare(engine);
  }

  engineClosed(engine: Engine): void {
    if (this.#awaited.has(engine)) return;
    this.#closed.set(
      engine,
      setTimeout(() => {
        this.#closed.delete(engine);
        this.#deaf(engine);
      }, CLOSED_MS),
    );
  }

  engineDied(engine: Engine): void {
    clearTimeout(this.#closed.get(engine));
    this.#closed.delete(engine);
    if (this.#ended.has(engine.jobRank)) this.#declare(engine);
    else {
      const patience = this.#isRank(engine) ? RANK_REPORT_MS : REPORT_MS;
      this.#awaited.set(
        engine,
        setTimeout(() => this.#declare(engine), patience),
      );
    }
  }

  close(): void {
    for (const timer of [...this.#awaited.values(), ...this.#closed.values()]) clearTimeout(timer);
    this.#awaited.clear();
    this.#closed.clear();
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
