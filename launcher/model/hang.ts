/** What the launcher reports where ranks make no progress. */

/** Ranks that do not get on, and who is to blame as far as it can be seen. */
export interface Hang {
  readonly communicator: string;
  /** Number of the operation, from 1. */
  readonly operation: number;
  /** `allReduce of 4194304 bytes` */
  readonly call: string;
  /** "rank 3 on h2 (pid 4711) has begun none since operation 16 (allReduce), which it has ended"; empty where all are inside. */
  readonly late: readonly string[];
  /** "rank 0 on h1 waits for rank 1 on h2 (eth0 to eth0)", as far as it is known. */
  readonly waits: readonly string[];
  /** Ranks of the job that are inside: `0-2,4`. */
  readonly waiting: string;
  /** How long the first of them has waited. */
  readonly seconds: number;
}
