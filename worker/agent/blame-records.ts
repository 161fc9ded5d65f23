/** Ranks of this host whose communicator another rank broke: where one of them fails, that other one is to blame. */
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import { keyName } from '../../control/messages/key.ts';
import type { Exited } from '../../control/messages/payload.ts';
import { encodeLeft } from '../../control/messages/rendezvous-codec.ts';
import { LeftHow, NAMES_JOB_RANK } from '../../control/messages/rendezvous.ts';

/**
 * A rank that fails this long after it left the broken communicator fails for another reason. `await using` leaves it before the error
 * reaches whoever prints it and ends the process, which takes more than a second where many processes share few processors.
 */
const AFTERMATH_MS = 5000;
/** How a C++ program ends that does not catch what it throws. */
const SIGABRT = 6;

interface CommunicatorRank {
  readonly key: Key;
  /** Rank in the communicator that broke it. */
  readonly rank: number;
}

export type BlameRecord =
  /** It did so without a failure of its own; `blame` is its rank in the job. */
  | (CommunicatorRank & { readonly type: 'missed'; readonly blame: number; readonly sentence: string })
  /** The rank's own exit, which this host may not know, shows whether it is to blame. */
  | (CommunicatorRank & { readonly type: 'suspected' })
  /** The same of a communicator of this host alone; `suspect`: that rank in the job. */
  | (CommunicatorRank & { readonly type: 'suspected-here'; readonly suspect: number });

interface Suffered {
  readonly record: BlameRecord;
  /** Milliseconds since 1970: who ended before it did not end of it. */
  readonly at: number;
  /** null: still in the communicator. */
  leftAt: number | null;
}

export class BlameRecords {
  readonly #suffered = new Map<number, Suffered[]>();

  /** The first one counts: a failure that follows from it is no cause of its own. */
  add(jobRank: number, record: BlameRecord, at: number): void {
    if (jobRank < 0 || (record.type === 'missed' && record.blame === jobRank)) return;
    this.#suffered.set(jobRank, [...this.#current(jobRank, Date.now()), { record, at, leftAt: null }]);
  }

  left(jobRank: number, key: Key): void {
    for (const suffered of this.#suffered.get(jobRank) ?? []) {
      if (keyName(suffered.record.key) === keyName(key)) suffered.leftAt ??= Date.now();
    }
  }

  /** Why a rank that ended so may have failed; null if it did not fail, or by itself. */
  causeOf(jobRank: number, { exitCode, signalNumber, time }: Exited): BlameRecord | null {
    const failed = signalNumber === null ? exitCode !== 0 : signalNumber === SIGABRT;
    return failed ? (this.#current(jobRank, time).find(({ at }) => at <= time)?.record ?? null) : null;
  }

  /** Those that what the rank does at `time` may follow from; an agent may learn of it much later. */
  #current(jobRank: number, time: number): Suffered[] {
    const suffered = this.#suffered.get(jobRank) ?? [];
    return suffered.filter(({ leftAt }) => leftAt === null || time - leftAt < AFTERMATH_MS);
  }
}

/** Reports to the launcher why the rank `jobRank`, whose exit is reported next, may have failed. */
export function blameFrame(jobRank: number, record: BlameRecord): Frame {
  const { key, rank } = record;
  const left = (subject: number, how: LeftHow, suspect: number, reason: string, flags = 0): Frame =>
    makeFrame(FrameKind.left, { subject, flags, payload: encodeLeft({ key, rank: suspect, how, reason }) });
  if (record.type === 'missed') return left(record.blame, LeftHow.missed, rank, record.sentence);
  if (record.type === 'suspected') return left(jobRank, LeftHow.suspected, rank, '');
  return left(jobRank, LeftHow.suspected, record.suspect, '', NAMES_JOB_RANK);
}
