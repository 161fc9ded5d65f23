/** What a file asks for and Slurm cannot give, found before anything is submitted. */
import { usageError } from '../../../model/usage-error.ts';
import type { BatchSpec, JobSpec } from '../../model/spec.ts';

/** Options of sbatch that a batch gives itself. */
const decided: readonly (readonly [flags: readonly string[], remedy: string])[] = [
  [['-J', '--job-name'], 'write name: in the job'],
  [['-a', '--array'], 'write array: 0-15'],
  [['-d', '--dependency', '--kill-on-invalid-dep'], 'write after: [prep]'],
  [['-H', '--hold'], 'write hold: true'],
  [['-o', '--output', '-e', '--error', '--open-mode'], 'write output: FILE'],
  [['-D', '--chdir'], 'write working_dir: DIRECTORY'],
  [['-n', '--ntasks', '-N', '--nodes', '--ntasks-per-node'], 'write ntasks:, nodes: and ntasks_per_node: in the job'],
  [['-t', '--time'], 'write time_limit: 12h'],
  [['--signal'], 'write signal: USR1@120'],
  [['--requeue', '--no-requeue'], 'write requeue: true or false'],
  [['-W', '--wait'], 'leave it out: ncclrun batch waits by itself'],
  [['--parsable', '--wrap', '--test-only', '-Q', '--quiet', '-v', '--verbose'], 'leave it out'],
  [['-M', '--clusters'], 'set SLURM_CLUSTERS, or run ncclrun on that cluster'],
  [['-h', '--help', '--usage', '-V', '--version'], 'leave it out: it submits no job'],
];

const remedies = new Map(decided.flatMap(([flags, remedy]) => flags.map((flag) => [flag, remedy])));

/** Throws a FailureError (usage) with the file and the line of the job. */
export function refuseOnSlurm({ jobs }: BatchSpec, file: string): void {
  for (const job of jobs) {
    const place = placeOf(job, file);
    refuseOptions(job, place);
    refuseHosts(job, place);
  }
}

/** `train (sweep.yaml:9)` */
export function placeOf({ name, line }: Pick<JobSpec, 'name' | 'line'>, file: string): string {
  return `${name} (${file}:${line})`;
}

function refuseOptions({ slurm }: JobSpec, place: string): void {
  for (const word of slurm) {
    const [long = ''] = word.split('=', 1);
    const flag = word.startsWith('--') ? long : word.slice(0, 2);
    const remedy = remedies.get(flag);
    if (remedy !== undefined)
      throw usageError(`${place} has ${word} in slurm:, and the batch itself decides ${flag}`, remedy);
  }
}

/** Slurm's --nodelist names hosts that a job gets, and not hosts that it may get. */
function refuseHosts({ demand: { hosts, exclude, nodes, ranks } }: JobSpec, place: string): void {
  const named = hosts?.filter((host) => !exclude.includes(host)).length ?? 0;
  const wanted = nodes ?? ranks;
  if (named > wanted)
    throw usageError(
      `${place} wants ${wanted} of the ${named} hosts that it names, and Slurm gives a job all hosts that it names`,
      'name as many hosts as it wants; or write exclude:, or slurm: [--constraint=FEATURE]',
    );
}
