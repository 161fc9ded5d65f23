/** How the earlier attempts of a task in Slurm have ended, by the records that they left. */
import { recordsIn } from '../../attempt/records.ts';

export interface Counts {
  readonly errors: number;
  /** Slurm ended them, or a host was lost, so that some have left no record. */
  readonly interruptions: number;
}

/** Of the attempts from `first` up to `attempt`, which is not counted. */
export function countsBefore(results: string, task: number, first: number, attempt: number): Counts {
  let [errors, interruptions] = [0, 0];
  for (let number = first; number < attempt; number += 1) {
    const outcome = recordsIn(results, task, number).end()?.outcome ?? 'interruption';
    if (outcome === 'interruption') interruptions += 1;
    else errors += 1;
  }
  return { errors, interruptions };
}
