/** Why Slurm does not start a job, in words; Slurm's own where there are no others. */

const known: Readonly<Record<string, string>> = {
  Resources: 'waits for free hosts',
  Priority: 'jobs of a higher priority are ahead of it in Slurm',
  BeginTime: 'Slurm starts it again in a moment',
  JobArrayTaskLimit: 'as many of its array run as may',
  JobHeldUser: 'held',
  JobHeldAdmin: 'held',
  JobHoldMaxRequeue: 'Slurm has started it as often as max_batch_requeue allows; ncclrun release lets it start again',
  DependencyNeverSatisfied: 'what it waits for will not happen',
  PartitionNodeLimit: 'it wants more hosts than the partition has or allows (PartitionNodeLimit)',
  PartitionTimeLimit: 'its time limit is beyond that of the partition (PartitionTimeLimit)',
  ReqNodeNotAvail: 'a host that it names is not available (ReqNodeNotAvail)',
};

/** `dependency`: what it waits for, in words of the batch. */
export function reasonText(reason: string, dependency: string): string {
  if (reason === 'Dependency' && dependency !== '') return dependency;
  const [word = ''] = reason.split(/[,(:]/u, 1);
  return known[word.trim()] ?? (reason === '' ? '' : `Slurm says: ${reason}`);
}
