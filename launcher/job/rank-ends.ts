/** How ranks ended, as failures: with what is known beside the status. */
import { OUTPUT_STDERR } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { RankExitFailure, RankSignalFailure } from './failure.ts';
import { LastWords } from './last-words.ts';
import type { ExitedRank } from './rank.ts';

export class RankEnds {
  readonly #words = new LastWords();
  readonly #outOfMemory = new Set<number>();

  /** A piece of a rank's output; all of it comes before its end. */
  heard({ subject: rank, flags, payload }: Frame): void {
    if ((flags & OUTPUT_STDERR) !== 0) this.#words.heard(rank, payload);
  }

  /** Its host says that its kernel killed the rank, for want of memory; its end follows. */
  outOfMemory(rank: number): void {
    this.#outOfMemory.add(rank);
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
    const place = { host, rank, pid, outOfMemory, stderrTail: this.#words.of(rank) };
    if (signal !== null) return { type: 'rank-signal', ...place, signal };
    return { type: 'rank-exit', ...place, exitCode: exitCode ?? 0 };
  }
}
