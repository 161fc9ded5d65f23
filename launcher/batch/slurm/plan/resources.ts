/** A job of a batch file in the options of sbatch. */
import type { Demand, JobSpec } from '../../model/spec.ts';
import { limitsOf } from './time-limit.ts';

const MIB = 2 ** 20;
/** sbatch's limit for the seconds of --signal. */
const LONGEST_SIGNAL_SECONDS = 65_535;

/** `highest`: priority of the batch's first job. What the user writes himself stands last, where sbatch lets it win. */
export function resourceOptions(job: JobSpec, highest: number): string[] {
  const { demand, retry, priority } = job;
  return [
    ...sizeOptions(demand),
    ...gpuOptions(demand),
    ...hostOptions(demand),
    ...(demand.cpusPerRank === 1 ? [] : [`--cpus-per-task=${demand.cpusPerRank}`]),
    ...(demand.memoryBytes === 0 ? [] : [`--mem=${Math.ceil(demand.memoryBytes / MIB)}M`]),
    ...(demand.exclusive ? ['--exclusive'] : []),
    ...timeOptions(job),
    ...(priority === highest ? [] : [`--nice=${(highest - priority) * 100}`]),
    retry.errors > 0 || retry.interruptions > 0 ? '--requeue' : '--no-requeue',
    ...job.slurm,
  ];
}

function sizeOptions({ ranks, nodes, ranksPerNode }: Demand): string[] {
  return [
    ...(nodes === null ? [] : [`--nodes=${nodes}`]),
    `--ntasks=${ranks}`,
    ...(ranksPerNode === null ? [] : [`--ntasks-per-node=${ranksPerNode}`]),
  ];
}

function gpuOptions({ asksGpus, gpuModel, ranks, ranksPerNode }: Demand): string[] {
  if (asksGpus !== true) return [];
  const model = gpuModel === undefined ? '' : `${gpuModel}:`;
  return [ranksPerNode === null ? `--gpus=${model}${ranks}` : `--gpus-per-node=${model}${ranksPerNode}`];
}

function hostOptions({ hosts, exclude }: Demand): string[] {
  const named = hosts?.filter((host) => !exclude.includes(host)) ?? null;
  return [
    ...(named === null ? [] : [`--nodelist=${named.join(',')}`]),
    ...(exclude.length === 0 ? [] : [`--exclude=${exclude.join(',')}`]),
  ];
}

function timeOptions({ timeLimitSeconds, signal }: JobSpec): string[] {
  if (timeLimitSeconds === null) return [];
  const { minutes } = limitsOf(timeLimitSeconds);
  const later = minutes * 60 - timeLimitSeconds;
  return [
    `--time=${minutes}`,
    // B: to the batch script, which has become ncclrun, and passes it on to the ranks.
    ...(signal === null
      ? []
      : [
          `--signal=B:${signal.name.replace(/^SIG/u, '')}@${Math.min(signal.secondsBefore + later, LONGEST_SIGNAL_SECONDS)}`,
        ]),
  ];
}
