import { usageError } from '../../model/usage-error.ts';
import type { HostCapacity } from '../model/capacity.ts';
import type { JobSpec } from '../model/spec.ts';
import { TaskQueue } from '../schedule/queue.ts';

/** Throws a FailureError (usage) for a job that would wait for ever, since it does not even fit these hosts when nothing else runs there. */
export function refuseMisfit({ name, demand }: JobSpec, hosts: readonly HostCapacity[]): void {
  const lack = new TaskQueue(hosts).neverFits({ demand });
  if (lack !== null)
    throw usageError(
      `the job ${name} can never run on these hosts: ${lack}`,
      'give the batch more hosts, or ask for less',
    );
}
