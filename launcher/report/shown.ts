/** What stderr has shown last, so that a failed rank's last words are repeated only where they are not in sight. */
import type { OutputChunk } from '../model/event.ts';
import type { Failure } from '../model/failure.ts';

/** As many as a failure repeats at most. */
const ENOUGH_LINES = 10;
/** After so many lines of ranks a message of ours has scrolled away. */
const BURYING_LINES = 20;

export class Shown {
  #rank: number | null = null;
  /** Of that rank's stderr, one below the other. */
  #lines = 0;
  #linesSinceReport = 0;

  /** A piece of output that goes to stderr. */
  chunk({ rank, stream, bytes }: OutputChunk): void {
    if (this.#linesSinceReport < BURYING_LINES) this.#linesSinceReport += lineCount(bytes, BURYING_LINES);
    const source = stream === 'stderr' ? rank : null;
    if (source !== this.#rank) this.#lines = 0;
    this.#rank = source;
    if (this.#lines < ENOUGH_LINES) this.#lines += lineCount(bytes, ENOUGH_LINES);
  }

  reported(): void {
    this.#linesSinceReport = 0;
  }

  /** What was told has scrolled away. */
  get buried(): boolean {
    return this.#linesSinceReport >= BURYING_LINES;
  }

  /** The failure without last words that stand right above. */
  trimmed(failure: Failure): Failure {
    if ('stderrTail' in failure)
      return this.#inSight(failure.rank, failure.stderrTail) ? { ...failure, stderrTail: [] } : failure;
    if (failure.type !== 'init-timeout' || failure.stderr === null) return failure;
    return this.#inSight(failure.stderr.rank, failure.stderr.tail) ? { ...failure, stderr: null } : failure;
  }

  #inSight(rank: number, lines: readonly string[]): boolean {
    return this.#rank === rank && this.#lines >= lines.length;
  }
}

/** At most about `limit`: what is more does not matter. */
function lineCount(bytes: Uint8Array, limit: number): number {
  let count = 0;
  for (let at = bytes.length; at > 0 && count < limit; count += 1) {
    at = bytes.lastIndexOf(0x0a, at - 1);
    if (at === -1) break;
  }
  return count;
}
