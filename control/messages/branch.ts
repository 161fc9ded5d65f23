/**
 * Agents that start agents: a launcher reaches a host by way of another one, whose agent runs a remote shell for it and passes frames on. What the
 * two ends say to each other are frames inside of frames of kind `branch`.
 */

/** Flags of a frame of kind `branch`. */
export const BranchWord = {
  /** Both ways: the payload is a frame for, or of, the agent at the end of the branch. */
  frame: 0,
  /** launcher → agent: start it; payload JSON BranchOrder. */
  begin: 1,
  /** launcher → agent: no further frame follows. */
  close: 2,
  /** launcher → agent: the remote shell is not needed any more; whoever is at its other end leaves by itself. */
  letGo: 3,
  /** launcher → agent: nothing of it goes on. */
  kill: 4,
  /** agent → launcher: no further frame follows; payload JSON BranchProblem. */
  closed: 5,
  /** agent → launcher: the remote shell is gone; payload JSON BranchEnd. */
  gone: 6,
} as const;

export interface BranchOrder {
  /** The remote shell and what it is told, program first. */
  readonly words: readonly string[];
}

export interface BranchProblem {
  /** What broke it; null for a clean end. */
  readonly problem: string | null;
}

export interface BranchEnd {
  /** Exit status of the remote shell; null: it was killed, or could not be started. */
  readonly status: number | null;
  /** The end of what it said on stderr. */
  readonly remarks: string;
}
