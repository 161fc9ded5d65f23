/**
 * Joins the two signs of a process's end: its pidfd (the engine is gone, nothing more will come from it) and the guardian's report (how it
 * ended). An engine may be a descendant of its rank, whose end the guardian does not report: then the first sign alone must do. The guardian
 * reports the end of each rank's own process, but after the rank's output has been taken: its peers do not wait for that for long.
 *
 *   connected ── connection closed ──► closed ── the process lives on ──► (closed)
 *       └──────── process died ──────────┴──► died ── the guardian's report, or none in time ──► (gone)
 */
import type { Exited } from '../../control/messages/payload.ts';
import { describeExit } from './describe-exit.ts';
import type { Engine } from './engine.ts';

/** After a descendant's end, that of its rank is reported within this time, or it lives on. */
const REPORT_MS = 20;
/** A rank's own end: a guardian that is merely busy has reported it by then. A rank without a report is blamed for less than it did. */
const RANK_REPORT_MS = 500;
/** A process that ends closes its sockets first; after this time it only closed this one. */
const CLOSED_MS = 100;

export interface ProcessExit {
  /** Follows the rank's name: "was killed by SIGKILL". */
  readonly phrase: string;
  /** With status 0; null: not known. */
  readonly cleanly: boolean | null;
}

interface ProcessExitsOptions {
  /** The process has ended. */
  gone(engine: Engine, exit: ProcessExit): void;
  /** The process lives on without its connection. */
  closed(engine: Engine): void;
  /** The guardian has started the process, and not one of its ancestors. */
  isRank(engine: Engine): boolean;
}

export class ProcessExits {
  readonly #options: ProcessExitsOptions;
  readonly #ended = new Map<number, Exited>();
  /** Ranks whose report is there; rankEnded follows. */
  readonly #reported = new Set<number>();
  /** Gone, the report is awaited; undefined: only rankEnded is. */
  readonly #awaited = new Map<Engine, NodeJS.Timeout | undefined>();
  /** Its connection is closed; whether it lives is not known yet. */
  readonly #closed = new Map<Engine, NodeJS.Timeout>();

  constructor(options: ProcessExitsOptions) {
    this.#options = options;
  }

  /** Ranks of this host that have ended. */
  get ended(): number {
    return this.#ended.size;
  }

  /** The guardian has reported the rank's end, and what its engines had sent before is handled first: no timer decides meanwhile. */
  endReported(rank: number): void {
    this.#reported.add(rank);
    for (const [engine, timer] of this.#awaited) if (engine.jobRank === rank) clearTimeout(timer);
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
        this.#options.closed(engine);
      }, CLOSED_MS),
    );
  }

  engineDied(engine: Engine): void {
    clearTimeout(this.#closed.get(engine));
    this.#closed.delete(engine);
    if (this.#ended.has(engine.jobRank)) this.#declare(engine);
    else if (this.#reported.has(engine.jobRank)) this.#awaited.set(engine, undefined);
    else {
      const timeoutMs = this.#options.isRank(engine) ? RANK_REPORT_MS : REPORT_MS;
      this.#awaited.set(
        engine,
        setTimeout(() => this.#declare(engine), timeoutMs),
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
      this.#options.gone(engine, { phrase: 'ended without leaving the communicator', cleanly: null });
      return;
    }
    const cause = describeExit(exited);
    const phrase = exited.signalNumber === null ? `${cause} without leaving the communicator` : cause;
    this.#options.gone(engine, { phrase, cleanly: exited.exitCode === 0 });
  }
}
