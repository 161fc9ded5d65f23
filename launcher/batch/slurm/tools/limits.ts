/** What the cluster's configuration says of arrays. */
import { slurmFailure } from './slurm-failure.ts';
import type { Tool } from './tool.ts';

/** Slurm's default for MaxArraySize. */
export const USUAL_ARRAY_SIZE = 1001;

/** One more than the largest number of an array's task. Throws a FailureError (system) where Slurm does not answer. */
export async function maxArraySize(tool: Tool): Promise<number> {
  const answer = await tool('scontrol', ['show', 'config']);
  if (!answer.ok) throw slurmFailure('scontrol', answer);
  const [, size = ''] = /^MaxArraySize\s*=\s*([0-9]+)\s*$/mu.exec(answer.stdout) ?? [];
  const number = Number(size);
  return number > 0 ? number : USUAL_ARRAY_SIZE;
}
