/** The records of a task's attempts in Slurm, where those can be read. */
import { existsSync } from 'node:fs';
import type { AttemptEnd } from '../../attempt/records.ts';
import { recordsIn } from '../../attempt/records.ts';

export interface LastAttempt {
  /** 0: none has begun. */
  readonly attempt: number;
  readonly end: AttemptEnd | null;
}

/** The latest one after `before` that has begun. */
export function lastAttempt(results: string, task: number, before: number): LastAttempt {
  let attempt = before;
  while (hasBegun(results, task, attempt + 1)) attempt += 1;
  if (attempt === before) return { attempt: 0, end: null };
  return { attempt, end: endIn(results, task, attempt) };
}

/** Whether a launcher has taken the attempt. */
export function hasBegun(results: string, task: number, attempt: number): boolean {
  return existsSync(recordsIn(results, task, attempt).directory);
}

/** Null: it has not ended, or left no record that can be read. */
export function endIn(results: string, task: number, attempt: number): AttemptEnd | null {
  try {
    return recordsIn(results, task, attempt).end();
  } catch {
    return null;
  }
}
