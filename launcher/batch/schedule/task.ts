import type { Demand } from '../model/spec.ts';

/** A task that waits for hosts, with what decides when its turn comes. */
export interface WaitingTask {
  readonly id: string;
  readonly demand: Demand;
  /** 0 to 100, the larger first. */
  readonly priority: number;
  /** null: it may run for ever. */
  readonly timeLimitSeconds: number | null;
  /** Number of the task in its file, unique; decides between tasks that are equal otherwise. */
  readonly order: number;
  /** When it began to wait, in milliseconds. */
  readonly queuedAt: number;
}

/** Milliseconds that a task may run. */
export function limitOf({ timeLimitSeconds }: Pick<WaitingTask, 'timeLimitSeconds'>): number {
  return timeLimitSeconds === null ? Infinity : timeLimitSeconds * 1000;
}
