/** Where ranks are in their communicators' operations: what agents tell of ranks that do not get on. */

/** One rank in one communicator, as its telemetry page says. */
export interface RankPosition {
  /** In the job. */
  readonly jobRank: number;
  /** The operation it has begun last, counted from 1; 0: none. */
  readonly operation: number;
  /** It has not ended that one. */
  readonly inside: boolean;
  /** What that is: `allReduce`. */
  readonly collective: string;
  readonly bytes: number;
  /** Milliseconds without progress inside of it; 0 where it is in none. */
  readonly waitedMs: number;
  /** Its process is stopped (SIGSTOP, a debugger). */
  readonly stopped: boolean;
}

/** Of a communicator on one host. */
export interface HostRankPositions {
  /** 16 hexadecimal digits. */
  readonly communicator: string;
  readonly epoch: number;
  /** Ranks in all. */
  readonly size: number;
  readonly ranks: readonly RankPosition[];
}

/** Payload of FrameKind.rankPositions. */
export interface RankPositionsQuery {
  readonly communicator: string;
  readonly epoch: number;
}
