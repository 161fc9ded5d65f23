/** A piece of a batch: what one call of sbatch submits, which is a job or some tasks of an array. */

/** In the words of sbatch's --dependency. */
export type WaitKind = 'after' | 'afterany' | 'afterok' | 'afternotok' | 'aftercorr';

/** What must have become of other pieces, by their numbers, before this one starts. */
export interface Wait {
  readonly kind: WaitKind;
  readonly pieces: readonly number[];
}

export interface PieceTask {
  /** Number in the batch. */
  readonly task: number;
  /** Its number in Slurm's array; null: the piece is no array. */
  readonly index: number | null;
}

export interface Piece {
  /** From 1 in the batch, in the order of submission: a piece waits only for pieces before it. */
  readonly number: number;
  /** Name of the job in Slurm, which no other job has: by it a submission is recognised that nobody knows the end of. */
  readonly name: string;
  /** Index of its job in the file. */
  readonly job: number;
  /** At least one. */
  readonly tasks: readonly PieceTask[];
  /** Attempts that its tasks had before this piece. */
  readonly before: number;
  readonly waits: readonly Wait[];
}
