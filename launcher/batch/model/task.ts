/** A task: a job of a batch, or one of an array's. */
import type { TaskState } from './states.ts';

export interface Task {
  /** Number in the batch, from 0. */
  readonly id: number;
  /** Index of its job in the file. */
  readonly job: number;
  /** Among the tasks of its job, from 0. */
  readonly position: number;
  readonly state: TaskState;
  /** Number of the latest attempt; 0: there was none. */
  readonly attempt: number;
  /** Attempts that ended by an error of its own. */
  readonly errors: number;
  /** Attempts that ended because a host or a launcher was lost. */
  readonly interruptions: number;
  /** Attempts during which a host died. */
  readonly hostDeaths: number;
  /** Milliseconds since 1970, like all times here. */
  readonly queuedAt: number;
  /** A retry waits until then. */
  readonly notBefore: number;
  /** Of the latest attempt. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly exitCode: number | null;
  /** Why it is in its state; may be empty. */
  readonly message: string;
  /** The user has asked for its end. */
  readonly cancelAsked: boolean;
}

/** What of a task changes at once. */
export type TaskChange = Partial<Omit<Task, 'id' | 'job' | 'position'>>;

export interface TaskEdit {
  readonly id: number;
  readonly change: TaskChange;
}
