/** Recorded operations of a job's ranks, as its report and `ncclrun dump` have them. */
import type { RecordedProcess } from '../../control/messages/recorder.ts';

/** Difference of a host's CLOCK_MONOTONIC to the launcher's, and by how much that may be wrong. */
export interface HostClock {
  readonly offsetNs: number;
  readonly errorNs: number;
}

export interface RecordedHost {
  readonly host: string;
  /** Null: its agent did not answer in time, or is lost. */
  readonly clock: HostClock | null;
}

export interface RecordedGroup {
  readonly id: string;
  readonly epoch: number;
  /** Of ncclConfig_t; null: it has none. */
  readonly name: string | null;
  readonly size: number;
  /** Ranks of the job that have recorded it, such as 0-3,7. */
  readonly members: string;
}

export interface RecordedRank extends RecordedProcess {
  readonly host: string;
}

export interface Recorder {
  readonly schemaVersion: 1;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  readonly hosts: readonly RecordedHost[];
  readonly communicators: readonly RecordedGroup[];
  readonly ranks: readonly RecordedRank[];
  /** Processes that are left out because there are too many. */
  readonly omitted: number;
}
