/** How ranks ended, as failures: with what is known beside the status. */
import { OUTPUT_STDERR } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { HostGpu } from '../../control/messages/gpu.ts';
import type { AgentReport } from '../../control/messages/link.ts';
import type { RankExitFailure, RankSignalFailure } from '../model/failure.ts';
import { LastWords } from './last-words.ts';
import type { ExitedRank } from './rank.ts';

export class RankEnds {
  readonly #words = new LastWords();
  readonly #outOfMemory = new Set<number>();
  readonly #aborted = new Set<number>();
  readonly #gpus = new Map<number, HostGpu>();

  /** A piece of a rank's output; all of it comes before its end. */
  output({ subject: rank, flags, payload }: Frame): void {
    if ((flags & OUTPUT_STDERR) !== 0) this.#words.add(rank, payload);
  }

  /** What its host knows of the end of a rank; the end itself follows. */
  report(report: Extract<AgentReport, { type: 'out-of-memory' | 'rank-gpu' }>): void {
    if (report.type === 'out-of-memory') this.#outOfMemory.add(report.rank);
    else this.#gpus.set(report.rank, report.gpu);
  }

  /** A rank has called MPI_Abort. False if it is not the first time. */
  abort(rank: number): boolean {
    const isNew = !this.#aborted.has(rank);
    this.#aborted.add(rank);
    return isNew;
  }

  hasAborted(rank: number): boolean {
    return this.#aborted.has(rank);
  }

  /** The end of what a rank has said on stderr so far. */
  lastWords(rank: number): readonly string[] {
    return this.#words.of(rank);
  }

  /** Null for a rank that ended well. */
  failureOf(host: string, rank: number, exited: ExitedRank): RankExitFailure | RankSignalFailure | null {
    const { pid, exitCode, signal } = exited;
    if (signal === null && (exitCode === null || exitCode === 0)) return null;
    const outOfMemory = this.#outOfMemory.has(rank);
    const gpu = this.#gpus.get(rank);
    const origin = { host, rank, pid, ...(gpu && { gpu }), outOfMemory, stderrTail: this.#words.of(rank) };
    if (signal !== null) return { type: 'rank-signal', ...origin, signal };
    return { type: 'rank-exit', ...origin, exitCode: exitCode ?? 0 };
  }
}
