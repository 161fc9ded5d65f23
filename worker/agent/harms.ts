/** Ranks of this host whose communicator another rank broke: where one of them fails, that other one is to blame. */
import type { Key } from '../../control/messages/key.ts';
import { keyName } from '../../control/messages/key.ts';
import type { Exited } from '../../control/messages/payload.ts';

/** A rank that fails this long after it left the broken communicator (`await using` leaves it first) fails for another reason. */
const AFTERMATH_MS = 1000;
/** How a C++ program ends that does not catch what it throws. */
const SIGABRT = 6;

export interface Harm {
  readonly key: Key;
  /** Rank in the communicator that broke it. */
  readonly rank: number;
  /** Its rank in the job. */
  readonly blame: number;
  readonly sentence: string;
}

interface Suffered extends Harm {
  /** null: still in the communicator. */
  leftAt: number | null;
}

export class Harms {
  readonly #suffered = new Map<number, Suffered>();

  /** The first one counts: what a harmed rank breaks in turn is no cause of its own. */
  add(jobRank: number, harm: Harm): void {
    if (jobRank < 0 || jobRank === harm.blame || this.#current(jobRank) !== null) return;
    this.#suffered.set(jobRank, { ...harm, leftAt: null });
  }

  left(jobRank: number, key: Key): void {
    const suffered = this.#suffered.get(jobRank);
    if (suffered !== undefined && keyName(suffered.key) === keyName(key)) suffered.leftAt ??= Date.now();
  }

  /** Why a rank that ended so may have failed; null if it did not fail, or by itself. */
  causeOf(jobRank: number, { exitCode, signalNumber }: Exited): Harm | null {
    const failed = signalNumber === null ? exitCode !== 0 : signalNumber === SIGABRT;
    return failed ? this.#current(jobRank) : null;
  }

  #current(jobRank: number): Harm | null {
    const suffered = this.#suffered.get(jobRank);
    if (suffered === undefined) return null;
    return suffered.leftAt === null || Date.now() - suffered.leftAt < AFTERMATH_MS ? suffered : null;
  }
}
