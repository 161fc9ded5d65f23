/** srun, for steps of one task on each of some hosts of the job. */
import { messageOf } from '../../../control/message-of.ts';
import type { HostSlots } from '../../model/types.ts';
import { startTool } from '../../local/host.ts';
import { makeConnectionError } from '../shell/connection-error.ts';

/** What srun takes from the job as wishes for each of its tasks, and would give the one task of a host, the agent, no more than that. */
const OF_TASKS = [
  'SLURM_CPUS_PER_TASK',
  'SRUN_CPUS_PER_TASK',
  'SLURM_GPUS_PER_TASK',
  'SLURM_TRES_PER_TASK',
  'SLURM_GPU_BIND',
  'SLURM_NTASKS_PER_CORE',
  'SLURM_NTASKS_PER_GPU',
  'SLURM_NTASKS_PER_SOCKET',
  'SLURM_EXACT',
  'SLURM_CPU_BIND',
];

/** What would change how srun starts the agents and passes on their streams. */
const OF_STEP = [
  'SLURM_STDINMODE',
  'SLURM_STDOUTMODE',
  'SLURM_STDERRMODE',
  'SLURM_LABELIO',
  'SLURM_DISTRIBUTION',
  'SLURM_EXCLUSIVE',
  'SLURM_HINT',
  'SLURM_IMMEDIATE',
  'SLURM_RELATIVE',
  'SLURM_REMOTE_CWD',
  'SLURM_WORKING_DIR',
  'SLURM_THREADS',
  'SLURM_TIMELIMIT',
];

/** Wishes about the GPUs of the whole job, which a step of some of its hosts must not repeat. */
const OF_JOB = ['SLURM_GPUS', 'SLURM_GPUS_PER_NODE', 'SLURM_GPUS_PER_SOCKET'];

export type Tool = ReturnType<typeof startTool>;

interface StepOptions {
  readonly hosts: readonly HostSlots[];
  /** What runs on each. */
  readonly task: readonly string[];
  /** A task that fails ends the others. */
  readonly together: boolean;
  /** What every task has on its stdin; null: what is sent to the tool. */
  readonly input: string | null;
}

/** @throws ConnectionError if srun cannot be started */
export function startStep({ hosts, task, together, input }: StepOptions): Tool {
  const gpus = gpusOption(hosts);
  const words = [
    'env',
    ...[...OF_TASKS, ...OF_STEP, ...(gpus.length > 0 ? OF_JOB : [])].flatMap((name) => ['-u', name]),
    'srun',
    '--overlap',
    `--nodes=${hosts.length}`,
    `--ntasks=${hosts.length}`,
    '--ntasks-per-node=1',
    `--nodelist=${hosts.map(({ name }) => name).join(',')}`,
    ...gpus,
    '--job-name=ncclrun',
    '--export=ALL',
    '--cpu-bind=none',
    '--mpi=none', // the agents serve MPI programs themselves
    `--kill-on-bad-exit=${together ? 1 : 0}`,
    '--wait=0',
    '--no-kill',
    '--quiet',
    ...task,
  ];
  try {
    return startTool(input === null ? words : ['sh', '-c', 'exec "$@" <"$0"', input, ...words], []);
  } catch (error) {
    const detail = `srun cannot be started: ${messageOf(error)}`;
    throw makeConnectionError('shell', detail, 'inside a Slurm job srun must be on the PATH');
  }
}

/** All GPUs that the job has on these hosts, which have the same option; nothing where Slurm gives a step all of them without it. */
function gpusOption([host]: readonly HostSlots[]): string[] {
  const option = host?.gpuOption;
  if (option === undefined) return [];
  if (option === null) {
    const detail = 'scontrol does not say which GPUs of the Slurm job each host has';
    throw makeConnectionError('shell', detail, 'try: scontrol show job --details $SLURM_JOB_ID');
  }
  return [option];
}
