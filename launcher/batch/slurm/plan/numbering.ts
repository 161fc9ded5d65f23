/** Which numbers the tasks of arrays have in Slurm. */
import type { JobSpec } from '../../model/spec.ts';

/**
 * True where tasks keep their own numbers in Slurm. Where Slurm cannot count so far (MaxArraySize) they are counted from 0. Two arrays that `each`
 * joins have the same numbers, which the check of the file sees to, and so the same ones in Slurm.
 */
export function keepsNumbers({ array }: JobSpec, maxArraySize: number): boolean {
  return (array?.tasks.at(-1)?.index ?? 0) < maxArraySize;
}
