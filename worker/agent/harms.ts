/** Ranks of this host whose communicator another rank broke: where one of them fails, that other one is to blame. */
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import { keyName } from '../../control/messages/key.ts';
import type { Exited } from '../../control/messages/payload.ts';
import { encodeLeft } from '../../control/messages/rendezvous-codec.ts';
import { LeftHow, NAMES_JOB_RANK } from '../../control/messages/rendezvous.ts';

/** A rank that fails this long after it left the broken communicator (`await using` leaves it first) fails for another reason. */
const AFTERMATH_MS = 1000;
/** How a C++ program ends that does not catch what it throws. */
const SIGABRT = 6;

interface Place {
  readonly key: Key;
  /** Rank in the communicator that broke it. */
  readonly rank: number;
}

export type Harm =
  /** It did so without a failure of its own; `blame` is its rank in the job. */
  | (Place & { readonly type: 'missed'; readonly blame: number; readonly sentence: string })
  /** Its own end, of which this host may know nothing, says whether it is to blame. */
  | (Place & { readonly type: 'suspected' })
  /** The same of a communicator of this host alone; `suspect`: that rank in the job. */
  | (Place & { readonly type: 'suspected-here'; readonly suspect: number });

interface Suffered {
  readonly harm: Harm;
  /** Milliseconds since 1970: who ended before it did not end of it. */
  readonly at: number;
  /** null: still in the communicator. */
  leftAt: number | null;
}

export class Harms {
  readonly #suffered = new Map<number, Suffered[]>();

  /** The first one counts: what a harmed rank breaks in turn is no cause of its own. */
  add(jobRank: number, harm: Harm, at: number): void {
    if (jobRank < 0 || (harm.type === 'missed' && harm.blame === jobRank)) return;
    this.#suffered.set(jobRank, [...this.#current(jobRank), { harm, at, leftAt: null }]);
  }

  left(jobRank: number, key: Key): void {
    for (const suffered of this.#suffered.get(jobRank) ?? []) {
      if (keyName(suffered.harm.key) === keyName(key)) suffered.leftAt ??= Date.now();
    }
  }

  /** Why a rank that ended so may have failed; null if it did not fail, or by itself. */
  causeOf(jobRank: number, { exitCode, signalNumber, time }: Exited): Harm | null {
    const failed = signalNumber === null ? exitCode !== 0 : signalNumber === SIGABRT;
    return failed ? (this.#current(jobRank).find(({ at }) => at <= time)?.harm ?? null) : null;
  }

  #current(jobRank: number): Suffered[] {
    const suffered = this.#suffered.get(jobRank) ?? [];
    return suffered.filter(({ leftAt }) => leftAt === null || Date.now() - leftAt < AFTERMATH_MS);
  }
}

/** Tells the launcher why the rank `jobRank`, whose end is told next, may have failed. */
export function harmFrame(jobRank: number, harm: Harm): Frame {
  const { key, rank } = harm;
  const left = (subject: number, how: LeftHow, suspect: number, reason: string, flags = 0): Frame =>
    makeFrame(FrameKind.left, { subject, flags, payload: encodeLeft({ key, rank: suspect, how, reason }) });
  if (harm.type === 'missed') return left(harm.blame, LeftHow.missed, rank, harm.sentence);
  if (harm.type === 'suspected') return left(jobRank, LeftHow.suspected, rank, '');
  return left(jobRank, LeftHow.suspected, harm.suspect, '', NAMES_JOB_RANK);
}
