/** Verdicts: what the launcher reports where ranks make no progress, call what does not fit together, fail, or are slow. */
import type { HostGpu } from '../../control/messages/gpu.ts';
import type { StackFrame } from '../../control/messages/stack.ts';

/**
 * late: a rank has not begun the operation, and computes or is in another one. stopped: by a signal or a debugger. stuck-outside: it sleeps outside
 * of all operations. stuck-inside: all ranks are inside, and a connection carries nothing. deadlock: ranks wait for each other. extra-call: few
 * ranks are in an operation that all others have not called. mismatch-…: ranks have called collectives that differ in order (another
 * collective), element type or operator, size or root. rank-dead: its process has ended. host-silent: its host does not answer. left: ranks have
 * left the communicator. init-missing: ranks have not joined a communicator that others wait for. straggler-compute: a rank regularly begins
 * operations last. straggler-host: all ranks of a host do. slow-link, slow-nic: the connections from one NIC to another, or of one NIC, carry less than
 * their equals. unknown: none of these.
 */
export type VerdictKind =
  | 'late'
  | 'stopped'
  | 'stuck-outside'
  | 'stuck-inside'
  | 'deadlock'
  | 'extra-call'
  | 'mismatch-order'
  | 'mismatch-type'
  | 'mismatch-size'
  | 'mismatch-root'
  | 'rank-dead'
  | 'host-silent'
  | 'left'
  | 'init-missing'
  | 'straggler-compute'
  | 'straggler-host'
  | 'slow-link'
  | 'slow-nic'
  | 'unknown';

/** certain: a fact of the kernel, or different calls. likely: seen twice, and no other explanation is left. suspected: others are possible. */
export type Confidence = 'certain' | 'likely' | 'suspected';

/** Where a rank is. other-communicator: in an operation that makes progress. */
export type RankWhere =
  | 'outside'
  | 'inside'
  | 'other-communicator'
  | 'stopped'
  | 'uninterruptible'
  | 'dead'
  | 'left'
  | 'unknown';

/** A fact that speaks for the verdict. */
export interface Evidence {
  /** process-state, cpu-share, sleeps-in, wait-channel, throttled, connection, call, ruled-out, exit, missing */
  readonly kind: string;
  readonly host: string | null;
  /** Whom or what it is about: `rank 3`. */
  readonly subject: string;
  readonly value: string | number;
  /** `%`, `periods`; null: none. */
  readonly unit: string | null;
}

/** Operation of a rank in the verdict's communicator. */
interface OperationNumber {
  readonly number: number;
  readonly collective: string;
}

/** A rank that is to blame; the last entry may stand for many, and has null where they differ. */
export interface Blamed {
  /** Ranks of the job: `3`, `12-899`. */
  readonly ranks: string;
  readonly host: string | null;
  readonly gpu: HostGpu | null;
  readonly pid: number | null;
  readonly where: RankWhere;
  /** The operation that it began last in the communicator; null: none. */
  readonly last: OperationNumber | null;
  /** Rank of the job that it waits for itself. */
  readonly waitsFor: number | null;
  readonly because: readonly Evidence[];
}

/** Ranks that are alike: one line of a table of the whole job. */
export interface RankClass {
  readonly ranks: string;
  readonly count: number;
  readonly where: RankWhere;
  /** The operation that they are in; null outside. */
  readonly communicator: string | null;
  readonly operation: OperationNumber | null;
}

/** Where ranks are in their programs. */
export interface HangStack {
  /** Number in the verdict, from 1. */
  readonly id: number;
  /** Ranks of the job with these frames, of those that were looked at: `0,3`. */
  readonly ranks: string;
  /** `main thread`, or the name of another one that called the engine. */
  readonly thread: string;
  /** The innermost first. */
  readonly frames: readonly StackFrame[];
}

/** An operation with its arguments: `count` elements of `type`; null of sends and receives. */
export interface VerdictOperation extends OperationNumber {
  readonly bytes: number;
  readonly count: number | null;
  readonly type: string | null;
  readonly operator: string | null;
  readonly root: number | null;
}

export interface Verdict {
  readonly schemaVersion: 1;
  readonly kind: VerdictKind;
  readonly confidence: Confidence;
  /** How long the first rank has waited. */
  readonly seconds: number;
  /** Where it began; null: in none. */
  readonly communicator: { readonly id: string; readonly epoch: number; readonly size: number } | null;
  /**
   * In which ranks wait; of mismatches the first collective that differs, by its number among the collectives, as most ranks have called it; of a
   * rank that has ended the one that it was in. Null: in none, or it is not known.
   */
  readonly operation: VerdictOperation | null;
  readonly blamed: readonly Blamed[];
  readonly waiting: { readonly ranks: string; readonly count: number; readonly longestSeconds: number };
  /** Who waits for whom, by ranks of the job: from a waiting rank to the blamed one, or around the cycle of a deadlock. */
  readonly chain: readonly { readonly from: number; readonly to: number; readonly communicator: string }[];
  readonly classes: readonly RankClass[];
  readonly evidence: readonly Evidence[];
  /** Of the blamed ranks and of one of each class; empty if they could not be read in time. */
  readonly stacks: readonly HangStack[];
  /** Number of other communicators that wait because of it. */
  readonly consequences: number;
  readonly remedy: string;
  /** One sentence for people. */
  readonly message: string;
}

/** Ranks that make no progress, and who is to blame as far as it can be seen. */
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
  /** The same as a structure, with its reasons. */
  readonly verdict: Verdict;
}
